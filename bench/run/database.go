package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib"
)

// server is the PostgreSQL server in which each run gets a database of its own.
type server struct {
	db   *sql.DB
	base *url.URL
}

func connect(ctx context.Context, rawURL string) (*server, error) {
	base, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the PostgreSQL server cannot be read")
	}
	db, err := sql.Open("pgx", rawURL)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil {
		return nil, err
	}
	return &server{db: db, base: base}, nil
}

// fresh makes an empty database. drop removes it again.
func (s *server) fresh(ctx context.Context) (databaseURL string, drop func(), err error) {
	name := "payonce_bench_" + strings.ToLower(rand.Text()[:10])
	if _, err := s.db.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u := *s.base
	u.Path = "/" + name
	return u.String(), func() {
		_, _ = s.db.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") // left behind at worst
	}, nil
}

// checkpoint writes out what earlier runs left in memory, so that the next one
// does not pay for it.
func (s *server) checkpoint(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "CHECKPOINT")
	return err
}

// settings that decide what a commit costs.
func (s *server) settings(ctx context.Context) (map[string]string, error) {
	m := map[string]string{}
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size"} {
		var value string
		if err := s.db.QueryRowContext(ctx, "SELECT current_setting('"+name+"')").Scan(&value); err != nil {
			return nil, err
		}
		m[name] = value
	}
	return m, nil
}
