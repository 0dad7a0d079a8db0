CREATE TABLE IF NOT EXISTS evidence (
  payment_id {{id}} NOT NULL,
  id {{id}} NOT NULL,
  order_id {{id}} NOT NULL,
  kind {{id}} NOT NULL,
  source {{id}} NOT NULL,
  number {{name}} NOT NULL,
  permit {{int}} NOT NULL,
  fence {{int}} NOT NULL,
  detail {{human}} NOT NULL,
  raw {{blob}} NOT NULL,
  made_at {{int}} NOT NULL,
  PRIMARY KEY (payment_id, id),
  CONSTRAINT evidence_names CHECK (id <> '' AND order_id <> '')
)
