// Command port is a model of the rule that published samples of idempotent
// payments teach: insert the key with "on conflict do nothing", call the
// channel, update the row. It is here to be measured against, and as the
// positive control of the double-charge check: it does not look whether the row
// was its own, so parallel twins all charge. It is no product; never build on
// it.
//
// It is written to be fast: two statements for a first payment, each its own
// transaction, prepared once per connection, on the driver and the pool settings
// of the service. It checks less, stores less and authenticates nobody.
//
// It must not know anything of Payonce but the pool settings that both share.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/payonce/payonce/bench/internal/books"
	"github.com/payonce/payonce/bench/internal/wire"
)

const schema = `CREATE TABLE IF NOT EXISTS idempotency_record (
  idempotency_key varchar(255) PRIMARY KEY,
  order_no varchar(64) NOT NULL,
  amount bigint NOT NULL,
  currency varchar(3) NOT NULL,
  status varchar(16) NOT NULL,
  channel_payment_id varchar(64),
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
)`

const (
	insertRecord = `INSERT INTO idempotency_record (idempotency_key, order_no, amount, currency, status)
		VALUES ($1, $2, $3, $4, 'PROCESSING') ON CONFLICT (idempotency_key) DO NOTHING`
	selectRecord = `SELECT order_no, amount, currency, status, COALESCE(channel_payment_id, '')
		FROM idempotency_record WHERE idempotency_key = $1`
	updateRecord = `UPDATE idempotency_record SET status = 'SUCCESS', channel_payment_id = $2, updated_at = now()
		WHERE idempotency_key = $1`
)

func main() {
	database := flag.String("database", "", "URL of an empty PostgreSQL database")
	conns := flag.Int("conns", 16, "connections of the pool")
	each := flag.Bool("count-each", false, "count charges for each order")
	flag.Parse()
	if err := serve(*database, *conns, *each); err != nil {
		fmt.Fprintln(os.Stderr, "port:", err)
		os.Exit(1)
	}
}

func serve(database string, conns int, each bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	db, err := sql.Open("pgx", database)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(3 * time.Minute)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	p := &port{db: db, books: &books.Books{Each: each}}
	control, err := p.books.Serve()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/payments", p.pay)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	if err := json.NewEncoder(os.Stdout).Encode(wire.Ready{Addr: l.Addr().String(), Control: control}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

type port struct {
	db    *sql.DB
	books *books.Books
}

type request struct {
	OrderNo  string `json:"order_no"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
}

type answer struct {
	OrderNo          string `json:"order_no"`
	Amount           int64  `json:"amount"`
	Currency         string `json:"currency"`
	Status           string `json:"status"`
	ChannelPaymentID string `json:"channel_payment_id"`
}

// pay is the sample's whole logic. The only use that it makes of "was the row
// there before" is to save a read: whoever finds the row not yet SUCCESS goes on
// to the channel, as the sample does.
func (p *port) pay(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || key == "" || in.OrderNo == "" || in.Amount <= 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	ctx := r.Context()
	res, err := p.db.ExecContext(ctx, insertRecord, key, in.OrderNo, in.Amount, in.Currency)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		a, err := p.known(ctx, key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if a.Status == "SUCCESS" {
			write(w, a, true)
			return
		}
	}
	ref, err := p.books.Charge(ctx, in.OrderNo, 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if _, err := p.db.ExecContext(ctx, updateRecord, key, ref); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, answer{in.OrderNo, in.Amount, in.Currency, "SUCCESS", ref}, false)
}

func (p *port) known(ctx context.Context, key string) (answer, error) {
	var a answer
	err := p.db.QueryRowContext(ctx, selectRecord, key).Scan(&a.OrderNo, &a.Amount, &a.Currency, &a.Status, &a.ChannelPaymentID)
	if errors.Is(err, sql.ErrNoRows) {
		return answer{}, errors.New("the record is gone")
	}
	return a, err
}

func write(w http.ResponseWriter, a answer, replayed bool) {
	w.Header().Set("Content-Type", "application/json")
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(a) // the client is gone: nobody to tell
}
