"""What a running step needs: signals, saved states, devices, processes, threads and progress bars."""
