package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/payonce/payonce/internal/store/sqlstore"
)

// Session implements sqlstore.Pipeline. Poolers that hand one server connection
// to many clients, and the other modes that they need, are served step by step.
func (dialect) Session(_ context.Context, conn *sql.Conn, f func(sqlstore.Session) error) (done bool, err error) {
	return pipelined(conn, func(c *pgx.Conn) error { return f(&session{conn: c}) })
}

// Query implements sqlstore.Pipeline.
func (dialect) Query(ctx context.Context, conn *sql.Conn, statements ...sqlstore.Statement) (done bool, err error) {
	return pipelined(conn, func(c *pgx.Conn) error { return (&session{conn: c, begun: true}).Run(ctx, statements...) })
}

func pipelined(conn *sql.Conn, f func(*pgx.Conn) error) (done bool, err error) {
	err = conn.Raw(func(driverConn any) error {
		c, ok := driverConn.(*stdlib.Conn)
		if !ok || c.Conn().Config().DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
			return nil
		}
		done = true
		return f(c.Conn())
	})
	return done || err != nil, err
}

// session is a transaction whose statements travel together: those of one Run
// take one round trip, and BEGIN rides with the first.
type session struct {
	conn  *pgx.Conn
	begun bool
}

const begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

var inBinary = []int16{pgx.BinaryFormatCode}

// Run implements sqlstore.Session. The server skips what follows a statement that
// raised; what follows one that touched the wrong rows is rolled back with it.
func (s *session) Run(ctx context.Context, statements ...sqlstore.Statement) error {
	prepared := make([]*pgconn.StatementDescription, len(statements))
	for i := range statements {
		var err error
		if prepared[i], err = s.prepare(ctx, statements[i].Text); err != nil {
			return err
		}
	}
	first, err := s.prepare(ctx, begin)
	if err != nil {
		return err
	}
	p := s.conn.PgConn().StartPipeline(ctx)
	opens := !s.begun
	if opens {
		p.SendQueryStatement(first, nil, nil, nil)
		s.begun = true
	}
	room := scratches.Get().(*scratch)
	defer scratches.Put(room)
	for i := range statements {
		values, err := room.encode(prepared[i], statements[i].Args)
		if err != nil {
			_ = p.Close() // nothing was sent in full: the connection is given up
			return err
		}
		p.SendQueryStatement(prepared[i], values, inBinary, inBinary)
	}
	err = p.Sync()
	if err == nil && opens {
		_, err = answer(p)
	}
	for i := range statements {
		if err != nil {
			break
		}
		err = s.receive(p, &statements[i])
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	s.forget(err)
	return err
}

// prepare returns the prepared statement of a text. A connection prepares each
// text once; there are few.
func (s *session) prepare(ctx context.Context, text string) (*pgconn.StatementDescription, error) {
	return s.conn.Prepare(ctx, text, text)
}

// forget gives up a connection whose prepared statements are not valid any more.
func (s *session) forget(err error) {
	e := (*pgconn.PgError)(nil)
	if errors.As(err, &e) && (e.Code == "0A000" || e.Code == "26000") {
		s.Abandon()
	}
}

// answer waits for the next result.
func answer(p *pgconn.Pipeline) (*pgconn.ResultReader, error) {
	result, err := p.GetResults()
	if err != nil {
		return nil, err
	}
	r, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("the server answered with %T", result)
	}
	return r, nil
}

// receive hears the answer to one statement.
func (s *session) receive(p *pgconn.Pipeline, st *sqlstore.Statement) error {
	r, err := answer(p)
	if err != nil {
		return err
	}
	fields := r.FieldDescriptions()
	for r.NextRow() {
		if st.Row == nil {
			continue
		}
		dest := st.Row()
		if len(dest) != len(fields) {
			return fmt.Errorf("%d columns where %d are read", len(fields), len(dest))
		}
		for i, value := range r.Values() {
			if err := decode(dest[i], fields[i].DataTypeOID, value); err != nil {
				return fmt.Errorf("column %s: %w", fields[i].Name, err)
			}
		}
		st.Got()
	}
	tag, err := r.Close()
	if err == nil && st.Row == nil && st.Touches >= 0 && tag.RowsAffected() != int64(st.Touches) {
		err = sqlstore.ErrStale
	}
	return err
}

// Commit implements sqlstore.Session. An aborted transaction answers COMMIT with
// ROLLBACK, which is no success.
func (s *session) Commit(ctx context.Context) error {
	tag, err := s.conn.Exec(ctx, "COMMIT")
	if err == nil && tag.String() != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return err
}

// rollbackTime is how long a ROLLBACK may take before the connection is given
// up instead.
const rollbackTime = 2 * time.Second

// Rollback implements sqlstore.Session.
func (s *session) Rollback() {
	if !s.begun || s.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
	defer cancel()
	if _, err := s.conn.Exec(ctx, "ROLLBACK"); err != nil {
		s.Abandon()
	}
}

// Abandon implements sqlstore.Session: the pool finds a closed connection and
// drops it. Nobody waits for the server.
func (s *session) Abandon() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.conn.Close(ctx)
}
