"""Runs the collector's SQL statements over its Parquet files in DuckDB and chDB and compares the answers.

Called by the test "other_engines_give_the_same_answers". An engine that is not installed is skipped, visibly.
"""

import json
import sys


def duckdb_rows(files):
    try:
        import duckdb
    except ImportError:
        print("skipped: DuckDB is not installed (pip install duckdb)")
        return None
    db = duckdb.connect()
    db.execute(f"CREATE VIEW flows AS SELECT *, CAST(1 AS UBIGINT) AS flows, 0 AS is_other FROM read_parquet({files!r})")
    return lambda sql: db.execute(sql).fetchall(), lambda sql: [d[0] for d in db.execute(sql).description]


def chdb_rows(files):
    try:
        from chdb import session
    except ImportError:
        print("skipped: chDB is not installed (pip install chdb-core)")
        return None
    db = session.Session()
    # Its file() takes one path; the columns are the same in all files.
    parts = " UNION ALL ".join(f"SELECT *, toUInt64(1) AS flows, 0 AS is_other FROM file('{path}', 'Parquet')" for path in files)
    db.query(f"CREATE VIEW flows AS {parts}")
    def run(sql):
        answer = json.loads(str(db.query(sql + " SETTINGS output_format_json_quote_64bit_integers=0", "JSONCompact")))
        return answer
    return lambda sql: run(sql)["data"], lambda sql: [m["name"] for m in run(sql)["meta"]]


def check(name, engine, cases):
    rows, names = engine
    for case in cases:
        total, *top = case["sql"][:2]
        column = names(total).index("value")
        flows = names(total).index("records")
        found = rows(total)
        value = sum(float(row[column]) for row in found)
        count = sum(int(row[flows]) for row in found)
        if value != case["total"] or count != case["rows"]:
            sys.exit(f"{name}: {total}: {value}, {count} rows, the collector says {case['total']}, {case['rows']} rows")
        if top:
            column = names(top[0]).index("value")
            values = [float(row[column]) for row in rows(top[0])]
            if values != case["top"]:
                sys.exit(f"{name}: {top[0]}: {values}, the collector says {case['top']}")
    print(f"{name}: {len(cases)} queries give the same answers")


with open(sys.argv[1]) as file:
    given = json.load(file)
for name, open_engine in [("DuckDB", duckdb_rows), ("chDB", chdb_rows)]:
    engine = open_engine(given["files"])
    if engine is not None:
        check(name, engine, given["cases"])
