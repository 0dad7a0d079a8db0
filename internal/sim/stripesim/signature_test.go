package stripesim

import (
	"testing"
	"time"
)

// TestSignatureVector is the published construction on fixed bytes.
func TestSignatureVector(t *testing.T) {
	got := signature("whsec_test_secret", time.Unix(1700000000, 0), []byte("{}"))
	want := "t=1700000000,v1=ceb8863f7208fa249a6cd8f951e993c7563412aca65866f6272283debe143ab3"
	if got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// TestGapsCoverThreeDays keeps the retry schedule inside Stripe's.
func TestGapsCoverThreeDays(t *testing.T) {
	var sum time.Duration
	for n, gap := range gaps {
		if n > 0 && gap < gaps[n-1] {
			t.Fatalf("gap %d is shorter than the one before", n)
		}
		sum += gap
	}
	if sum > 72*time.Hour || sum < 48*time.Hour {
		t.Fatalf("retries end after %v", sum)
	}
}

// TestCodesHaveAStatus finds codes that could not travel.
func TestCodesHaveAStatus(t *testing.T) {
	for code := range shapes {
		if e := coded(code); e.status < 400 || e.Type == "" {
			t.Errorf("%s: status %d, type %q", code, e.status, e.Type)
		}
	}
	for _, code := range declineCodes {
		if e := coded(code); e.status != 402 || e.Code != "card_declined" || e.DeclineCode != code {
			t.Errorf("%s: %+v", code, e)
		}
	}
}
