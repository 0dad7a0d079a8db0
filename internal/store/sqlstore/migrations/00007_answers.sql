CREATE TABLE IF NOT EXISTS answers (
  payment_id {{id}} NOT NULL,
  status {{id}} NOT NULL,
  http_status {{int}} NOT NULL,
  content_type {{human}} NOT NULL,
  body {{blob}} NOT NULL,
  PRIMARY KEY (payment_id, status),
  CONSTRAINT answers_status CHECK (status IN ('CREATED', 'PROCESSING', 'PENDING', 'UNKNOWN', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  CONSTRAINT answers_http_status CHECK (http_status BETWEEN 100 AND 599)
)
