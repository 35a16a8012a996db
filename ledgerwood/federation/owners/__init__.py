"""The side of an owner of rows: what it has, what it accepts, what it answers, and the account that it keeps."""
