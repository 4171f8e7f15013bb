"""`python -m cep` is the command `cep`."""

from cep.cli.main import main

if __name__ == "__main__":
    main()
