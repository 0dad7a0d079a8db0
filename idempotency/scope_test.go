package idempotency

import (
	"errors"
	"strings"
	"testing"
)

// The expected values were computed by another program, from R9 alone.
func TestR09_GoldenRecordIDs(t *testing.T) {
	cases := []struct {
		scope Scope
		key   Key
		want  string
	}{
		{Scope{"live", "m1"}, "abc", "d35474c12be778f2a1cae62697bf9f8d199e5d07aaff0b7c464b6ec2f23ac4d8"},
		{Scope{"test", "m1"}, "8e03978e-40d5-43dd-bc93-6894a57f9324", "7bc09a4f66647ee3f41f70ccbdbc6940a6df739540b93463925119f8586c5e13"},
	}
	for _, c := range cases {
		if got := c.scope.Record(c.key).String(); got != c.want {
			t.Errorf("record of %q in %+v = %s, want %s; stored records would be lost", c.key.Value(), c.scope, got, c.want)
		}
	}
}

func TestT15_T16_TenantsAndEnvironmentsAreUnrelated(t *testing.T) {
	ids := map[RecordID]string{}
	for _, c := range []struct {
		scope Scope
		key   Key
	}{
		{Scope{"live", "m1"}, "abc"},
		{Scope{"live", "m2"}, "abc"},
		{Scope{"test", "m1"}, "abc"},
		{Scope{"live", "m1"}, "abd"},
		// The lengths in front keep the fields apart.
		{Scope{"live", "m1a"}, "bc"},
		{Scope{"livem", "1"}, "abc"},
		{Scope{"live", "m"}, "1abc"},
	} {
		id := c.scope.Record(c.key)
		name := c.scope.Environment + "|" + c.scope.Tenant + "|" + c.key.Value()
		if other, taken := ids[id]; taken {
			t.Errorf("%s and %s have one record", name, other)
		}
		ids[id] = name
	}
}

// A credential is no part of the scope, so two of one tenant give one record; what
// is left to show is that the same scope gives the same id each time.
func TestT17_SameScopeSameRecord(t *testing.T) {
	first, second := Scope{"live", "m1"}.Record("abc"), Scope{"live", "m1"}.Record("abc")
	if first != second {
		t.Error("one key in one scope has two records")
	}
}

func TestR10_NoScopeNoRecord(t *testing.T) {
	for _, s := range []Scope{{}, {Environment: "live"}, {Tenant: "m1"}} {
		if err := s.Validate(); !errors.Is(err, ErrNoScope) {
			t.Errorf("Validate of %+v = %v", s, err)
		}
		if !panics(func() { s.Record("abc") }) {
			t.Errorf("%+v has a record; all nameless callers would share it", s)
		}
		if _, err := newFingerprinter(t).Sum(s, payment()); !errors.Is(err, ErrNoScope) {
			t.Errorf("Sum in %+v = %v", s, err)
		}
	}
	if !panics(func() { Scope{"live", "m1"}.Record("") }) {
		t.Error("the empty key has a record")
	}
	if err := (Scope{"live", "m1"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestR12_LongFieldsHaveRecords(t *testing.T) {
	s := Scope{"live", strings.Repeat("m", 10_000)}
	if s.Record(Key(strings.Repeat("k", MaxKeyLength))) == s.Record(Key(strings.Repeat("k", MaxKeyLength-1))) {
		t.Error("long keys are cut")
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
