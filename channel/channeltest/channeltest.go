// Package channeltest is the conformance suite of package channel: what every
// adapter must do on the wire, whatever its channel.
//
// An adapter's own test declares its channel as data (how a valid intent looks,
// how the channel says each statement, which codes it documents) and calls
// [Run]. The suite plays the channel on real sockets, counts what arrives, and
// breaks connections at every place where they can break.
//
// This package must not know any adapter, the engine, the store, or the
// simulator.
package channeltest

import (
	"bytes"
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/payonce/payonce"
	"github.com/payonce/payonce/channel"
)

// Step names the call of the contract that a request belongs to.
type Step string

// Steps of the contract.
const (
	Prepare Step = "prepare"
	Begin   Step = "begin"
	Query   Step = "query"
	Close   Step = "close"
)

// Env is where an adapter under test is pointed.
type Env struct {
	BaseURL string
	Roots   *x509.CertPool // what the adapter may trust beside the system; nil over plain http
	Now     func() time.Time
}

// Statement is what the channel says in an answer or a notice.
type Statement struct {
	Kind     payonce.FactKind
	Number   string
	Object   string
	Amount   payonce.Amount
	Currency payonce.Currency
	// Foreign: the answer or notice belongs to another account or mode.
	Foreign bool
}

// Request is one request as the fake channel received it.
type Request struct {
	Conn   int // which connection: 1, 2, …
	Method string
	URI    string
	Header http.Header
	Body   []byte
}

// Reply is an answer of the fake channel. Status 0 is 200.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Case is one answer of the channel and what it must be taken for.
type Case struct {
	Name  string // the channel's code
	Step  Step
	Reply func(Request) Reply
	Want  payonce.FactKind
	// Check looks closer; nil: the kind is all.
	Check func(t *testing.T, a channel.Answer)
}

// BadIntent is an intent that Compose must refuse, and the member it must name.
type BadIntent struct {
	Name    string
	Change  func(*channel.Intent)
	Pointer string
}

// Method declares one method of the adapter.
type Method struct {
	Intent channel.Intent // valid
	Object string         // the object of payments under way, "" where the channel has none
	Says   map[Step][]payonce.FactKind
	Say    func(Step, Statement, Request) Reply
	// Foreign: Say can show another account.
	Foreign  bool
	Codes    []Case // every documented code
	Unlisted []Case // answers that no table has; Want is ignored: unknown
	Bad      []BadIntent
	// Key reads the idempotency key, Number the number or object that a request
	// names. Nil where the channel has none.
	Key    func(Request) string
	Number func(Request) string
	// Bytes returns what of the stored request the step sends; nil: all of it.
	Bytes func(step Step, stored []byte) []byte
	// Sent reads from a request what must equal it, where the channel wants more
	// in a request than stored bytes (a fresh timestamp and its signature); nil:
	// the body.
	Sent func(Request) []byte
	// NoBody: the step's good answers have no body, so they cannot break off inside
	// one.
	NoBody map[Step]bool
	// OneCurrency: the channel's answers name no currency, since it has only one.
	OneCurrency bool
}

// Suite declares an adapter.
type Suite struct {
	New     func(t testing.TB, e Env) channel.Adapter
	Methods []Method
	Notices *Notices
	// Secrets must never show in Err, Raw, Reason or Failure.
	Secrets []string
}

// patience is how long a call may take after its context ended, and how long
// the suite waits for anything. It is far above what a sound adapter needs.
const patience = 10 * time.Second

// Run proves the adapter.
func Run(t *testing.T, s Suite) {
	if len(s.Methods) == 0 || len(s.Secrets) == 0 {
		t.Fatal("channeltest: a suite needs methods and secrets")
	}
	for _, m := range s.Methods {
		t.Run(m.Intent.Method, func(t *testing.T) {
			r := &runner{suite: s, m: m}
			t.Run("Compose", r.compose)
			t.Run("SelfSigned", r.selfSigned)
			t.Run("Statements", r.statements)
			t.Run("Codes", r.codes)
			t.Run("ReportedAsIs", r.asIs)
			t.Run("Repeat", r.repeat)
			t.Run("NeverSent", r.neverSent)
			t.Run("OneRequest", r.oneRequest)
			t.Run("KeptAlive", r.keptAlive)
			t.Run("BrokenAnswers", r.broken)
			t.Run("Deadline", r.deadline)
			t.Run("Secrets", r.secrets)
			t.Run("Concurrent", r.concurrent)
		})
	}
	if s.Notices != nil {
		t.Run("Notices", func(t *testing.T) { notices(t, s) })
	}
}

// runner runs the cases of one method.
type runner struct {
	suite Suite
	m     Method
}

// bench is one adapter on one fake channel, with one payment.
type bench struct {
	*runner
	t       *testing.T
	wire    *Wire
	adapter channel.Adapter
	payment payonce.Payment
}

func (r *runner) bench(t *testing.T) *bench {
	t.Helper()
	w := NewWire(t, nil)
	return r.on(t, w, Env{BaseURL: w.URL})
}

func (r *runner) on(t *testing.T, w *Wire, e Env) *bench {
	t.Helper()
	now := time.Now()
	e.Now = func() time.Time { return now }
	a := r.suite.New(t, e)
	in := r.m.Intent
	request, err := a.Compose(in)
	if err != nil {
		t.Fatalf("Compose of the valid intent: %v", err)
	}
	return &bench{runner: r, t: t, wire: w, adapter: a, payment: payonce.Payment{
		ID: "pay_1", OrderID: "ord_1", Key: in.Order, Sequence: in.Sequence, Status: payonce.Processing,
		Amount: in.Amount, Currency: in.Currency, Account: a.Account(), Method: in.Method, Number: in.Number,
		Request: request, ReturnURL: in.ReturnURL, ObjectID: r.m.Object, DeadAt: in.DeadAt,
		Seen: true, // closing is asked for only then
	}}
}

// steps lists the calls that the method has.
func (r *runner) steps() []Step {
	all := []Step{Prepare, Begin, Query, Close}
	return slices.DeleteFunc(all, func(s Step) bool { return len(r.m.Says[s]) == 0 })
}

// good says what the channel answers first in the step's list.
func (b *bench) good(s Step) func(Request) Reply {
	return b.say(s, b.statement(b.m.Says[s][0]))
}

func (b *bench) statement(k payonce.FactKind) Statement {
	return Statement{Kind: k, Number: b.payment.Number, Object: b.m.Object, Amount: b.payment.Amount, Currency: b.payment.Currency}
}

func (b *bench) say(s Step, st Statement) func(Request) Reply {
	return func(r Request) Reply { return b.m.Say(s, st, r) }
}

// call makes one call and checks what holds for every answer.
func (b *bench) call(s Step, keyNo int) channel.Answer {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return b.callCtx(ctx, s, keyNo)
}

func (b *bench) callCtx(ctx context.Context, s Step, keyNo int) channel.Answer {
	b.t.Helper()
	c := channel.Call{Payment: b.payment, KeyNo: keyNo}
	before := slices.Clone(b.payment.Request)
	var a channel.Answer
	switch s {
	case Prepare:
		p, ok := b.adapter.(channel.Preparer)
		if !ok {
			b.t.Fatal("the suite declares prepare, the adapter is no Preparer")
		}
		a = p.Prepare(ctx, c)
	case Begin:
		a = b.adapter.Begin(ctx, c)
	case Query:
		a = b.adapter.Query(ctx, c)
	case Close:
		a = b.adapter.Close(ctx, c)
	}
	if !bytes.Equal(before, b.payment.Request) {
		b.t.Errorf("%s changed the stored request", s)
	}
	b.sound(s, a)
	return a
}

// sound checks the rules that bind every answer.
func (b *bench) sound(s Step, a channel.Answer) {
	b.t.Helper()
	if a.Source != string(s) {
		b.t.Errorf("%s: source is %q", s, a.Source)
	}
	if a.Account == "" {
		b.t.Errorf("%s: the answer names no account", s)
	}
	if a.Kind == payonce.StateUnknown && a.Reason == "" {
		b.t.Errorf("%s: no knowledge without a reason", s)
	}
	if a.Kind == payonce.StateUnknown && a.Err == nil {
		b.t.Errorf("%s: no knowledge without a cause for the log", s)
	}
	if a.Kind == payonce.StateRefused && (s == Query || s == Close) {
		b.t.Errorf("%s: a refused question is no knowledge, got refused", s)
	}
	if (a.Kind == payonce.StateRefused || a.Kind == payonce.StateDeclined) && (a.Failure == nil || a.Failure.Code == "") {
		b.t.Errorf("%s: %s without a failure", s, a.Kind)
	}
	if len(a.Raw) > channel.MaxEvidence {
		b.t.Errorf("%s: %d bytes of evidence", s, len(a.Raw))
	}
	texts := []string{a.Reason, string(a.Raw)}
	if a.Err != nil {
		texts = append(texts, a.Err.Error())
	}
	if a.Failure != nil {
		texts = append(texts, a.Failure.Message, a.Failure.ChannelCode)
	}
	for _, secret := range b.suite.Secrets {
		for _, text := range texts {
			if strings.Contains(text, secret) {
				b.t.Errorf("%s: a secret shows in %.80q", s, text)
			}
		}
	}
}

// arrived fails unless exactly n requests came since the last look.
func (b *bench) arrived(n int) []Request {
	b.t.Helper()
	got := b.wire.Take()
	if len(got) != n {
		b.t.Errorf("%d requests arrived, want %d", len(got), n)
	}
	return got
}
