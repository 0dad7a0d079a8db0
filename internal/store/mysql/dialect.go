package mysql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Dialect is that of MySQL and MariaDB, for printing the schema without a
// database.
var Dialect sqlstore.Dialect = dialect{}

type dialect struct{}

// Name implements sqlstore.Dialect.
func (dialect) Name() string { return "mysql" }

// Schema implements sqlstore.Dialect. Identifiers and names are VARBINARY: they
// compare as bytes whatever the connection's collation, and trailing blanks
// count, which they do not in any collation of MariaDB's ascii.
func (dialect) Schema() sqlstore.SchemaRules {
	return sqlstore.SchemaRules{
		Types: map[sqlstore.Kind]string{
			sqlstore.ID: "VARBINARY(64)", sqlstore.Name: "VARBINARY(255)", sqlstore.Human: "TEXT", sqlstore.JSON: "MEDIUMTEXT",
			sqlstore.Hash: "BINARY(32)", sqlstore.Salt: "BINARY(16)", sqlstore.Blob: "MEDIUMBLOB", sqlstore.Int: "BIGINT", sqlstore.Bool: "SMALLINT",
		},
		InlineIndex:  true,
		TableSuffix:  " ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		CurrencyForm: "currency REGEXP '^[A-Z]{3}$'",
	}
}

// Migrations implements sqlstore.Dialect.
func (dialect) Migrations() (goose.Dialect, lock.Locker, error) {
	l, err := lock.NewMySQLTableLocker(lock.WithTableLockTimeout(200*time.Millisecond, 600))
	return goose.DialectMySQL, l, err
}

// Isolation implements sqlstore.Dialect.
func (dialect) Isolation() sql.IsolationLevel { return sql.LevelReadCommitted }

// Rebind implements sqlstore.Dialect.
func (dialect) Rebind(query string) string { return query }

// Now implements sqlstore.Dialect.
func (dialect) Now() string {
	return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
}

// Locking implements sqlstore.Dialect. Without the hint a small table would be
// scanned in another order, and locks of strangers' rows waited for.
func (dialect) Locking(index string) (hint, suffix string) {
	return " FORCE INDEX (" + index + ")", " FOR UPDATE"
}

// Insert implements sqlstore.Dialect.
func (dialect) Insert(t sqlstore.Table, rows [][]any, ignore bool) (string, []any) {
	tail := ""
	if ignore {
		id := t.Columns[0].Name
		tail = " ON DUPLICATE KEY UPDATE " + id + " = " + t.Name + "." + id
	}
	return sqlstore.PlainInsert(t, rows, tail)
}

// Update implements sqlstore.Dialect. The new rows are read first and each finds
// its own by the primary key, so that nothing else is locked.
func (dialect) Update(t sqlstore.Table, guard string, rows [][]any) (string, []any) {
	var b strings.Builder
	b.WriteString("UPDATE (")
	args := make([]any, 0, len(rows)*len(t.Columns))
	for i, row := range rows {
		if i == 0 {
			b.WriteString("SELECT ? AS " + strings.ReplaceAll(sqlstore.Names(t.Columns, ""), ", ", ", ? AS "))
		} else {
			b.WriteString(" UNION ALL SELECT " + sqlstore.Marks(len(t.Columns)))
		}
		// As bytes: compared with the key without a collation in between.
		if id, ok := row[0].(string); ok {
			args = append(args, []byte(id))
		} else {
			args = append(args, row[0])
		}
		args = append(args, row[1:]...)
	}
	id := t.Columns[0].Name
	b.WriteString(") v STRAIGHT_JOIN " + t.Name + " t ON t." + id + " = v." + id + " SET " + sqlstore.Assignments(t, "t."))
	if guard != "" {
		b.WriteString(" WHERE t." + guard + " = v." + guard + " - 1")
	}
	return b.String(), args
}

// Classify implements sqlstore.Dialect.
func (dialect) Classify(err error) (sqlstore.Class, string) {
	if errors.Is(err, driver.ErrBadConn) {
		return sqlstore.ClassUnavailable, ""
	}
	e := (*mysql.MySQLError)(nil)
	if !errors.As(err, &e) {
		return sqlstore.ClassUnavailable, ""
	}
	switch e.Number {
	case 1213, 9007, 8028, 8002, 8022: // deadlock; TiDB: write conflict, schema changed, must retry
		return sqlstore.ClassRetry, ""
	case 1205: // innodb_lock_wait_timeout
		return sqlstore.ClassHeld, ""
	case 1062:
		return sqlstore.ClassDuplicate, ""
	case 1290, 1792, 1836, 1047: // read-only server or transaction; Galera node without quorum
		return sqlstore.ClassReadOnly, ""
	case 4025, 3819, 1264, 1265, 1292, 1366, 1406, 1048, 1364, 3140:
		return sqlstore.ClassRefused, "" // CHECK, range, truncation, NULL
	case 1146:
		return sqlstore.ClassUnavailable, "run `payonce migrate up`"
	}
	return sqlstore.ClassUnavailable, ""
}
