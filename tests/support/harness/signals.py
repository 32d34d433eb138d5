"""The signals of a process, as /proc/PID/status shows them."""

OF_THE_C_LIBRARY = 1 << 31 | 1 << 32
"""Signals 32 and 33, which glibc lets no program set, whatever an ancestor made of them: GNU make
starts its commands with both ignored."""
