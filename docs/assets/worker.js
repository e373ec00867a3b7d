// The search runs in a worker, and browsers start no workers for pages from the disk. There, an invisible frame runs
// the worker's script instead: it gets and posts the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== this.frame) return;
        const copy = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      // The frame has this page's origin; its script posts to the page and loads further scripts by tags.
      this.frame.document.open();
      this.frame.document.write(`<script>
        window.postMessage = (data) => parent.postMessage(data, "*");
        window.importScripts = (...urls) => urls.reduce((done, url) => done.then(() => new Promise((resolve) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = resolve;
          document.body.append(script);
        })), Promise.resolve());
      <\/script><body><script src="${url}"><\/script></body>`);
      this.frame.document.close();
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve));
    }
    postMessage(data) {
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
}
