"""Engines that are killed, run out of disk and meet hostile state: nothing may be lost."""
