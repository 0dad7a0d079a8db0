package books

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/payonce/payonce/bench/internal/wire"
)

func TestCountFindsOrdersChargedTwice(t *testing.T) {
	b := &Books{Each: true}
	for _, order := range []string{"a", "b", "a", "c", "a"} {
		if _, err := b.Charge(t.Context(), order, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.Count(), (wire.Count{Charges: 5, Orders: 3, OverCharged: 1, MostForOne: 3}); got != want {
		t.Errorf("Count is %+v, want %+v", got, want)
	}
}

func TestChargeThatIsCutOffTakesNothing(t *testing.T) {
	b := &Books{Each: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Charge(ctx, "a", time.Hour); err == nil {
		t.Error("a call without an answer gave a charge")
	}
	if got := b.Count(); got != (wire.Count{}) {
		t.Errorf("Count is %+v, want nothing", got)
	}
}

func TestServeShowsTheCount(t *testing.T) {
	b := &Books{}
	if _, err := b.Charge(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	addr, err := b.Serve()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + addr + wire.PathCount)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got wire.Count
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Charges != 1 {
		t.Errorf("the control listener says %+v, %v", got, err)
	}
}
