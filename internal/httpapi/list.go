package httpapi

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/payonce/payonce"
)

// Limits of a page.
const (
	defaultPage = 50
	maxPage     = 500
)

// page is which part of a list is wanted.
type page struct {
	limit int
	after string // id of the last object of the page before, "" for the first page
}

// page reads limit and after. A cursor is the id of an object, encoded so that
// nobody builds one; one that was made up can only name a place in the caller's
// own list.
func (x *exchange) page(prefix string) (page, error) {
	limit, err := x.queryInt("limit", defaultPage, 1, maxPage)
	if err != nil {
		return page{}, err
	}
	p := page{limit: limit}
	if x.query.Has("after") {
		raw, err := base64.RawURLEncoding.DecodeString(x.query.Get("after"))
		if err != nil || !payonce.ValidID(prefix, string(raw)) {
			return page{}, invalid([]payonce.Field{{Pointer: queryPointer("after"), Message: "A value of next from an earlier page of this list is needed."}})
		}
		p.after = string(raw)
	}
	return p, nil
}

// queryInt reads an integer parameter that is written with digits alone.
func (x *exchange) queryInt(name string, otherwise, low, high int) (int, error) {
	if !x.query.Has(name) {
		return otherwise, nil
	}
	text := x.query.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high || strings.Trim(text, "0123456789") != "" {
		return 0, invalid([]payonce.Field{{
			Pointer: queryPointer(name),
			Message: "An integer from " + strconv.Itoa(low) + " to " + strconv.Itoa(high) + " is needed.",
		}})
	}
	return n, nil
}

// oneOf says which values are allowed, "" for one of them.
func oneOf(s string, allowed []string) string {
	if slices.Contains(allowed, s) {
		return ""
	}
	return "One of " + strings.Join(allowed, ", ") + " is needed."
}
