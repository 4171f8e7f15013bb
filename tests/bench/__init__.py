"""How fast the engine is, beside loops written by hand for the same questions.

`python -m tests.bench` runs everything, prints one table and writes a JSON file; `--help` tells
more. What is measured is a ratio: engine and loop take turns in one run on one machine, since the
speed of a machine drifts by more than what is looked for. No test asserts a time.

`python -m tests.bench peers` measures other engines too; it installs them in an environment of
their own in the folder of the data.
"""
