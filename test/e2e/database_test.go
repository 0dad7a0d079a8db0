package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // driver pgx
)

const (
	defaultPostgres = "postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable"
	defaultMySQL    = "mysql://root@127.0.0.1:3306/test"
)

var databaseSerial atomic.Int64

func setting(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func databaseName() string { return fmt.Sprintf("payonce_e2e_%s_%d", runID, databaseSerial.Add(1)) }

// openWithin opens a server and asks whether it is there.
func openWithin(driver, dsn string) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// postgresAdmin connects to the server's own database.
func postgresAdmin(t testing.TB) *sql.DB {
	t.Helper()
	db, err := openWithin("pgx", setting("PAYONCE_TEST_POSTGRES", defaultPostgres))
	if err != nil {
		missing(t, "PostgreSQL", err)
	}
	return db
}

// newPostgres makes an empty database and returns its address; drop removes it.
func newPostgres(t testing.TB) (dsn string, drop func()) {
	t.Helper()
	admin := postgresAdmin(t)
	name := databaseName()
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(setting("PAYONCE_TEST_POSTGRES", defaultPostgres))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String(), func() {
		_, _ = admin.Exec("DROP DATABASE " + name + " WITH (FORCE)")
		admin.Close()
	}
}

// newMySQL makes an empty database and returns its address; drop removes it.
func newMySQL(t testing.TB) (dsn string, drop func()) {
	t.Helper()
	address := setting("PAYONCE_TEST_MYSQL", defaultMySQL)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User = "tcp", u.Host, u.User.Username()
	c.Passwd, _ = u.User.Password()
	admin, err := openWithin("mysql", c.FormatDSN())
	if err != nil {
		missing(t, "MariaDB", err)
	}
	name := databaseName()
	if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return strings.TrimSuffix(u.String(), "?"), func() {
		_, _ = admin.Exec("DROP DATABASE " + name)
		admin.Close()
	}
}

// through returns the address with another host.
func through(t testing.TB, dsn, host string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host
	return u.String()
}

// hostOf returns the server's address.
func hostOf(t testing.TB, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if u.Port() == "" {
		return u.Host + ":5432"
	}
	return u.Host
}
