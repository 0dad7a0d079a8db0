CREATE TABLE IF NOT EXISTS audit (
  order_id {{id}} NOT NULL,
  n {{int}} NOT NULL,
  actor {{name}} NOT NULL,
  changes {{json}} NOT NULL,
  salt {{salt}} NOT NULL,
  hash {{hash}} NOT NULL,
  made_at {{int}} NOT NULL,
  PRIMARY KEY (order_id, n),
  CONSTRAINT audit_n CHECK (n >= 1)
)
