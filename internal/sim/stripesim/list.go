package stripesim

import "strconv"

const (
	defaultPage = 10
	maxPage     = 100
)

// listOf answers a list call: newest first, with cursors, limit and the
// created filters. order is oldest first; row returns the object, its time
// and whether it belongs to the list.
func listOf(c *call, order []string, url string, row func(id string) (any, int64, bool)) *result {
	p := c.params
	limit, given, e := p.integer("limit")
	if e != nil {
		return fail(e)
	}
	if !given {
		limit = defaultPage
	}
	if limit < 1 || limit > maxPage {
		return fail(invalid("parameter_invalid_integer", "limit", "limit must be between 1 and "+strconv.Itoa(maxPage)+"."))
	}
	in, e := createdFilter(p)
	if e != nil {
		return fail(e)
	}
	after, before := p.get("starting_after"), p.get("ending_before")
	if after != "" && before != "" {
		return fail(invalid("parameter_invalid", "starting_after", "You cannot use both cursors."))
	}
	ids := newestFirst(order)
	for _, cursor := range []string{after, before} {
		if cursor != "" && indexOf(ids, cursor) < 0 {
			return fail(missing("object", cursor, "starting_after"))
		}
	}
	switch {
	case after != "":
		ids = ids[indexOf(ids, after)+1:]
	case before != "":
		ids = ids[:indexOf(ids, before)]
	}
	var data []any
	more := false
	take := func(id string) bool {
		o, created, belongs := row(id)
		if !belongs || !in(created) {
			return true
		}
		if int64(len(data)) == limit {
			more = true
			return false
		}
		data = append(data, o)
		return true
	}
	if before != "" {
		// The page that ends just before the cursor: collect upwards.
		for n := len(ids) - 1; n >= 0 && take(ids[n]); n-- {
		}
		reverse(data)
	} else {
		for n := 0; n < len(ids) && take(ids[n]); n++ {
		}
	}
	if data == nil {
		data = []any{}
	}
	return ok(object{"object": "list", "data": data, "has_more": more, "url": url})
}

func newestFirst(order []string) []string {
	ids := make([]string, len(order))
	for n, id := range order {
		ids[len(order)-1-n] = id
	}
	return ids
}

func indexOf(ids []string, id string) int {
	for n, other := range ids {
		if other == id {
			return n
		}
	}
	return -1
}

func reverse(data []any) {
	for a, b := 0, len(data)-1; a < b; a, b = a+1, b-1 {
		data[a], data[b] = data[b], data[a]
	}
}

// createdFilter reads created=… and created[gt|gte|lt|lte]=….
func createdFilter(p params) (func(int64) bool, *apiError) {
	type bound struct {
		name string
		ok   func(created, limit int64) bool
	}
	bounds := []bound{
		{"created", func(c, l int64) bool { return c == l }},
		{"created[gt]", func(c, l int64) bool { return c > l }},
		{"created[gte]", func(c, l int64) bool { return c >= l }},
		{"created[lt]", func(c, l int64) bool { return c < l }},
		{"created[lte]", func(c, l int64) bool { return c <= l }},
	}
	var checks []func(int64) bool
	for _, b := range bounds {
		limit, given, e := p.integer(b.name)
		if e != nil {
			return nil, e
		}
		if given {
			checks = append(checks, func(created int64) bool { return b.ok(created, limit) })
		}
	}
	return func(created int64) bool {
		for _, check := range checks {
			if !check(created) {
				return false
			}
		}
		return true
	}, nil
}
