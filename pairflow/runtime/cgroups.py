"""The limits of this process's control groups, such as a container's or a cluster's job's."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def read_limits(controller: str, unified: str, *older: str) -> Iterator[list[int]]:
    """Yield the numbers of a limit in each control group of this process, from its own up to the root.

    `controller` is what is limited, such as `memory`. Control groups of version 2 have the limit in the file
    `unified`, and of version 1 in the files `older`, with one number in each. A group without this limit
    yields nothing. In a container the path of its group may be the host's, so that only the root is there.
    """
    with suppress(OSError):
        for line in OWN.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root, files = (GROUPS / controller, older) if controllers else (GROUPS, (unified,))
            place = root / group.strip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(root):
                    with suppress(OSError, ValueError):  # no such file, or the word `max`
                        yield [int(word) for file in files for word in (folder / file).read_text().split()]
