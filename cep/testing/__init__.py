"""Testing rules: the runner of `test` blocks, the modes of the specification, the reference."""
