"""The papers that a plan, an estimator, an event or an audit rests on: `cite`, and the tables that it reads."""

from ledgerwood.citing.cite import cite as cite
