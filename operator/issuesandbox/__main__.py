"""`python -m issuesandbox` is the command line."""

from issuesandbox.entry.cli import main

if __name__ == "__main__":
    main()
