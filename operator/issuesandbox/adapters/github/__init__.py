"""GitHub over HTTP; nothing above this package knows status codes or JSON of GitHub's."""
