package core

import (
	"strings"
	"testing"
)

func TestSeedDecidesKeys(t *testing.T) {
	a, err := newSeed(1).RSA("x")
	if err != nil {
		t.Fatal(err)
	}
	b, err := newSeed(1).RSA("x")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newSeed(2).RSA("x")
	if err != nil {
		t.Fatal(err)
	}
	if !a.Equal(b) || a.Equal(c) || a.N.BitLen() != 2048 {
		t.Fatal("keys do not follow the seed")
	}
}

func TestSeedTexts(t *testing.T) {
	s := newSeed(1)
	first := s.Text("a", 1, 24)
	if first != s.Text("a", 1, 24) || s.Text("a", 1, 24) == s.Text("a", 2, 24) || s.Text("a", 1, 24) == s.Text("b", 1, 24) {
		t.Fatal("texts do not follow seed, label and serial")
	}
	if d := s.Digits("d", 20); len(d) != 20 || d[0] == '0' || strings.Trim(d, "0123456789") != "" {
		t.Fatalf("digits: %s", d)
	}
}
