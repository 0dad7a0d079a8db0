package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/payonce/payonce/internal/run"
	"github.com/payonce/payonce/internal/store"
	"github.com/payonce/payonce/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// queue offers the same due work until it is taken off.
type queue struct {
	store.Queue
	mu      sync.Mutex
	due     []store.Due
	notices []store.Notice
	err     error
	asked   chan struct{}
}

func (q *queue) DuePayments(context.Context, int) ([]store.Due, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case q.asked <- struct{}{}:
	default:
	}
	return append([]store.Due(nil), q.due...), q.err
}

func (q *queue) DueOrders(context.Context, int) ([]store.Due, error) { return nil, nil }

func (q *queue) DueNotices(context.Context, int) ([]store.Notice, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]store.Notice(nil), q.notices...), nil
}

func (q *queue) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, d := range q.due {
		if d.PaymentID == id {
			q.due = append(q.due[:i:i], q.due[i+1:]...)
			return
		}
	}
}

// stepper counts what it is given; a step waits until the test lets it go.
type stepper struct {
	q     *queue
	wake  chan struct{}
	began chan string
	let   chan error
}

func (s *stepper) Wake() <-chan struct{} { return s.wake }

func (s *stepper) Step(ctx context.Context, d store.Due) error {
	s.began <- d.PaymentID
	select {
	case err := <-s.let:
		if err == nil {
			s.q.remove(d.PaymentID)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stepper) StepNotice(_ context.Context, n store.Notice) error {
	s.q.mu.Lock()
	s.q.notices = nil
	s.q.mu.Unlock()
	s.began <- n.EventID
	return nil
}

func start(t *testing.T, q *queue, parallel int) *stepper {
	t.Helper()
	s := &stepper{q: q, wake: make(chan struct{}, 1), began: make(chan string, 100), let: make(chan error)}
	r := run.NewLive(nil)
	w := worker.New(worker.Config{Engine: s, Queue: q, Runner: r, Parallel: parallel, Poll: time.Millisecond})
	r.Go("worker", w.Run)
	t.Cleanup(func() {
		if err := r.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func rounds(q *queue, n int) {
	for range n {
		<-q.asked
	}
}

func TestJ01_WorkThatIsUnderWayIsNotStartedTwice(t *testing.T) {
	q := &queue{due: []store.Due{{PaymentID: "p1"}}, asked: make(chan struct{})}
	s := start(t, q, 8)
	if got := <-s.began; got != "p1" {
		t.Fatal(got)
	}
	rounds(q, 20) // it is found again and again meanwhile
	s.let <- nil
	rounds(q, 20)
	select {
	case got := <-s.began:
		t.Fatalf("%s was started again", got)
	default:
	}
}

func TestAHangingChannelDoesNotStopTheRounds(t *testing.T) {
	q := &queue{due: []store.Due{{PaymentID: "p1"}, {PaymentID: "p2"}}, asked: make(chan struct{}),
		notices: []store.Notice{{NoticeID: store.NoticeID{EventID: "n1"}}}}
	s := start(t, q, 1)
	<-s.began
	rounds(q, 10) // the only slot is taken, the rounds go on
	s.let <- nil
	seen := map[string]bool{}
	for !seen["p2"] || !seen["n1"] {
		id := <-s.began
		seen[id] = true
		if id == "p2" {
			s.let <- nil
		}
	}
}

func TestFailedWorkRests(t *testing.T) {
	q := &queue{due: []store.Due{{PaymentID: "p1"}}, asked: make(chan struct{})}
	s := start(t, q, 8)
	<-s.began
	s.let <- errors.New("refused by a constraint")
	rounds(q, 50)
	select {
	case <-s.began:
		t.Fatal("it was tried again at once")
	default:
	}
}

func TestAnAbsentDatabaseDoesNotEndTheLoop(t *testing.T) {
	q := &queue{err: store.ErrUnavailable, asked: make(chan struct{})}
	s := start(t, q, 8)
	rounds(q, 3)
	q.mu.Lock()
	q.err, q.due = nil, []store.Due{{PaymentID: "p1"}}
	q.mu.Unlock()
	go func() { // the pause has grown; a wake ends it
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}()
	for {
		select {
		case <-q.asked:
		case <-s.began:
			s.let <- nil
			return
		}
	}
}
