package sqlstore

import (
	"context"
	"database/sql"
	"errors"
)

// Statement is one statement of a transaction and what is expected of it.
type Statement struct {
	Text string // with the engine's placeholders
	Args []any
	// Row returns the destinations of the next row, and Got is called when they
	// are filled. nil: the statement returns no rows.
	Row func() []any
	Got func()
	// Touches is how many rows a statement without rows must touch, anyNumber for
	// any.
	Touches int
}

// anyNumber: the number of rows says nothing.
const anyNumber = -1

// Session is a transaction on one connection. It is used by one goroutine.
type Session interface {
	// Run runs statements in their order, up to the first that fails. A statement
	// that touched another number of rows than it must is ErrStale.
	Run(ctx context.Context, statements ...Statement) error
	// Commit ends the transaction. An error says nothing about its end unless
	// the database itself refused.
	Commit(ctx context.Context) error
	// Rollback ends the transaction, or its connection where that fails.
	Rollback()
	// Abandon gives the connection up: what it did is not known.
	Abandon()
}

// Pipeline is implemented by a dialect whose driver sends several statements in
// one go, and hears their answers together.
type Pipeline interface {
	// Session runs f with a transaction, which begins with its first statement.
	// It reports false, and does nothing, where the connection cannot do it.
	Session(ctx context.Context, conn *sql.Conn, f func(Session) error) (bool, error)
	// Query runs statements that read, each with a picture of its own. It reports
	// false like Session.
	Query(ctx context.Context, conn *sql.Conn, statements ...Statement) (bool, error)
}

// Lists is implemented by a dialect that takes a list of values as one argument.
type Lists interface {
	// List returns a condition with one placeholder, to follow an expression, and
	// its argument.
	List(kind Kind, values []any) (condition string, arg any)
}

// session runs f with a new transaction on conn.
func (s *Store) session(ctx context.Context, conn *sql.Conn, f func(Session) error) error {
	if p, ok := s.d.(Pipeline); ok && !s.o.ReadOnly {
		if done, err := p.Session(ctx, conn, f); done {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, s.txOptions())
	if err != nil {
		return notBegun{err}
	}
	return f(&stepwise{conn: conn, tx: tx})
}

// stepwise is a Session that waits for each answer: what every driver can do.
type stepwise struct {
	conn *sql.Conn
	tx   *sql.Tx
}

// Run implements Session.
func (t *stepwise) Run(ctx context.Context, statements ...Statement) error {
	for i := range statements {
		if err := step(ctx, t.tx, &statements[i]); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements Session.
func (t *stepwise) Commit(context.Context) error { return t.tx.Commit() }

// Rollback implements Session.
func (t *stepwise) Rollback() {
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		t.Abandon()
	}
}

// Abandon implements Session.
func (t *stepwise) Abandon() { discard(t.conn) }

// step runs one statement.
func step(ctx context.Context, q querier, st *Statement) error {
	if st.Row == nil {
		return exec(ctx, q, st.Text, st.Args, st.Touches)
	}
	rows, err := q.QueryContext(ctx, st.Text, st.Args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is in rows.Err
	for rows.Next() {
		if err := rows.Scan(st.Row()...); err != nil {
			return err
		}
		st.Got()
	}
	return rows.Err()
}

// exec runs a statement that must touch exactly n rows.
func exec(ctx context.Context, q querier, query string, args []any, n int) error {
	result, err := q.ExecContext(ctx, query, args...)
	if err != nil || n == anyNumber {
		return err
	}
	touched, err := result.RowsAffected()
	if err != nil {
		return err
	}
	if touched != int64(n) {
		return ErrStale
	}
	return nil
}

// querier is a transaction, a connection or a pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// reads is a statement that reads all rows into new values.
func reads[T any](text string, args []any, dest func(*T) []any, use func(*T)) Statement {
	var v *T
	return Statement{Text: text, Args: args, Row: func() []any { v = new(T); return dest(v) }, Got: func() { use(v) }}
}

// each reads all rows of a query into new values.
func each[T any](ctx context.Context, q querier, text string, args []any, dest func(*T) []any, use func(*T)) error {
	st := reads(text, args, dest, use)
	return step(ctx, q, &st)
}
