"""Read a ledger database independently: one query, no code of the store that wrote it."""

from pathlib import Path

from ledgerwood.errors import InvalidParameter, LedgerError


def database_lines(url: str, dataset: str | None) -> tuple[list[str], str]:
    """The lines of a data set's ledger in their order, and the head that the database keeps for it.

    Raises:
        LedgerError: no such database or data set, or it cannot be read.
        InvalidParameter: no data set is named.
        ImportError: the extra `sql` is missing.
    """
    if dataset is None:
        raise InvalidParameter("dataset=None must be the label of a data set: a database holds many (unit: text)")
    try:
        return _read(url, dataset)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"a ledger in a database needs {missing.name}: pip install 'ledgerwood[sql]'", name=missing.name
        ) from missing


def _read(url: str, dataset: str) -> tuple[list[str], str]:
    import sqlalchemy as sa

    try:
        address = sa.make_url(url)
        name = f"{address.render_as_string()}, data set {dataset!r}"
        if address.drivername == "postgresql":
            address = address.set(drivername="postgresql+psycopg")
        if address.drivername.startswith("sqlite") and not Path(str(address.database)).is_file():
            raise LedgerError(f"there is no ledger database {name}")
        engine = sa.create_engine(address, hide_parameters=True)
        try:
            with engine.connect() as connection:  # one statement: one state of the database
                rows = connection.execute(
                    sa.text(
                        "SELECT e.line, h.head FROM ledgerwood_entries e "
                        "JOIN ledgerwood_heads h ON h.dataset = e.dataset "
                        "WHERE e.dataset = :dataset ORDER BY e.position"
                    ),
                    {"dataset": dataset},
                ).all()
        finally:
            engine.dispose()
    except sa.exc.SQLAlchemyError as error:
        raise LedgerError(f"the ledger database cannot be read: {getattr(error, 'orig', None) or error}") from error
    if not rows:
        raise LedgerError(f"there is no ledger at {name}")
    return [row.line for row in rows], str(rows[0].head)
