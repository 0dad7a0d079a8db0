package sqlstore

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
)

// fakeDialect shows the rows of a statement in place of its words.
type fakeDialect struct{ Dialect }

func (fakeDialect) Insert(t Table, rows [][]any, _ bool) (string, []any) {
	return "insert " + t.Name, show(t, rows)
}
func (fakeDialect) Update(t Table, _ string, rows [][]any) (string, []any) {
	return "update " + t.Name, show(t, rows)
}
func (fakeDialect) Rebind(query string) string { return query }

func show(t Table, rows [][]any) []any {
	var out []any
	for _, r := range rows {
		line := ""
		for i, c := range t.Columns {
			if slices.Contains([]string{"account", "payment_ref", "subject", "type", "change_no", "event_id"}, c.Name) {
				line += fmt.Sprint(" ", r[i])
			}
		}
		out = append(out, line[min(1, len(line)):])
	}
	return out
}

// recording is a Session that keeps what it is asked to run.
type recording struct {
	Session
	ran []Statement
}

func (r *recording) Run(_ context.Context, statements ...Statement) error {
	r.ran = append(r.ran, statements...)
	return nil
}

// TestWritersTakeUniqueKeysInOneOrder: rows for which two orders can fight are
// written in the order of their unique key, whatever order they were decided in,
// and all writers go through the tables in one order.
func TestWritersTakeUniqueKeysInOneOrder(t *testing.T) {
	s := &Store{d: fakeDialect{}, o: Options{Runner: run.NewLive(nil)}}
	var jobs []*job
	for i, name := range []string{"b", "a"} {
		j := &job{unit: &store.Unit{}, writes: true, created: i == 0, row: &orderRow{}}
		j.view = &store.View{Aggregate: payonce.Aggregate{Order: &j.row.Order, Now: time.UnixMicro(1)}}
		j.scramble(name)
		jobs = append(jobs, j)
	}
	tx := &recording{}
	if err := s.save(t.Context(), tx, jobs); err != nil {
		t.Fatal(err)
	}
	var tables []string
	got := map[string][]any{}
	for _, st := range tx.ran {
		tables = append(tables, st.Text)
		got[st.Text] = st.Args
	}
	if want := []string{"insert orders", "update orders", "insert notices", "insert charges", "insert events"}; !slices.Equal(tables, want) {
		t.Errorf("%q, want %q", tables, want)
	}
	for table, want := range map[string][]any{
		"insert notices": {"a e type", "b e type"},
		"insert charges": {"a 1", "a 2", "b 1", "b 2"},
		"insert events":  {"paid a 2", "paid a 10", "paid b 2", "paid b 10"},
	} {
		if !reflect.DeepEqual(got[table], want) {
			t.Errorf("%s: %q, want %q", table, got[table], want)
		}
	}
}

// scramble fills a job with rows in no order.
func (j *job) scramble(account string) {
	v := j.view
	j.charges = set[payonce.Charge]{rows: chargeRows, added: []*payonce.Charge{{Account: account, PaymentRef: "2"}, {Account: account, PaymentRef: "1"}}}
	v.NewNotice = &store.Notice{NoticeID: store.NoticeID{Account: account, EventID: "e"}, Type: "type"}
	v.Outbox = []store.OutboxEvent{{Type: "paid", Subject: account, Change: 10}, {Type: "paid", Subject: account, Change: 2}}
}

// TestEveryTableIsWritten: each table of the schema that units write has its part.
func TestEveryTableIsWritten(t *testing.T) {
	missing := []string{"orders", "payments", "charges", "idempotency_keys", "evidence", "answers", "events", "audit", "notices"}
	for _, p := range written {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == p.table.Name })
	}
	if len(missing) > 0 {
		t.Errorf("not written: %v", missing)
	}
}
