CREATE TABLE IF NOT EXISTS notices (
  account {{name}} NOT NULL,
  event_id {{name}} NOT NULL,
  status {{id}} NOT NULL,
  type {{name}} NOT NULL,
  number {{name}} NOT NULL,
  object_id {{name}} NOT NULL,
  payment_id {{id}} NOT NULL,
  headers {{json}} NOT NULL,
  body {{blob}} NOT NULL,
  received_at {{int}} NOT NULL,
  due_at {{int}},
  PRIMARY KEY (account, event_id),
  CONSTRAINT notices_names CHECK (account <> '' AND event_id <> ''),
  CONSTRAINT notices_status CHECK (status IN ('applied', 'parked'))
  {{sparse "notices_due" "due_at"}}
)
