package stripesim

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params are form or query parameters with bracket keys, as sent.
type params url.Values

func parseForm(raw string) (params, *apiError) {
	v, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("parameter_invalid", "", "The request body could not be read as a form.")
	}
	return params(v), nil
}

// get is the last value of a key, trimmed of nothing.
func (p params) get(key string) string {
	if v := p[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (p params) has(key string) bool { return len(p[key]) > 0 }

// sub collects name[key]=value.
func (p params) sub(name string) map[string]string {
	var m map[string]string
	for key := range p {
		inner, ok := strings.CutPrefix(key, name+"[")
		inner, closed := strings.CutSuffix(inner, "]")
		if !ok || !closed || strings.ContainsAny(inner, "[]") {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[inner] = p.get(key)
	}
	return m
}

// list collects name[]=a and name[0]=b.
func (p params) list(name string) []string {
	out := slices.Clone(p[name+"[]"])
	for n := 0; ; n++ {
		key := name + "[" + strconv.Itoa(n) + "]"
		if !p.has(key) {
			return out
		}
		out = append(out, p.get(key))
	}
}

func (p params) flag(name string) bool { return p.get(name) == "true" }

// integer reads a required-shape number; absent is 0, false.
func (p params) integer(name string) (int64, bool, *apiError) {
	if !p.has(name) {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(p.get(name), 10, 64)
	if err != nil {
		return 0, false, invalid("parameter_invalid_integer", name, "Invalid integer: "+p.get(name))
	}
	return n, true, nil
}

// oneOf refuses a value outside a closed set; absent passes.
func (p params) oneOf(name string, values ...string) *apiError {
	if v := p.get(name); p.has(name) && !slices.Contains(values, v) {
		return invalid("parameter_invalid", name, "Invalid "+name+": must be one of "+strings.Join(values, ", "))
	}
	return nil
}

// unknown finds a parameter that the call does not have.
func (p params) unknown(allowed []string) *apiError {
	keys := make([]string, 0, len(p))
	for key := range p {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		top, _, _ := strings.Cut(key, "[")
		if top != "expand" && !slices.Contains(allowed, top) {
			return invalid("parameter_unknown", key, "Received unknown parameter: "+key)
		}
	}
	return nil
}

// maxMetadata and the sizes are Stripe's published limits.
const (
	maxMetadata      = 50
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

// mergeMetadata applies metadata[...] to old: an empty value removes a key,
// an empty metadata removes all.
func (p params) mergeMetadata(old map[string]string) (map[string]string, *apiError) {
	next := map[string]string{}
	if !p.has("metadata") || p.get("metadata") != "" {
		for k, v := range old {
			next[k] = v
		}
	}
	for k, v := range p.sub("metadata") {
		if len(k) > maxMetadataKey || len(v) > maxMetadataValue {
			return nil, invalid("parameter_invalid", "metadata", "Metadata keys have at most 40 and values at most 500 characters.")
		}
		if v == "" {
			delete(next, k)
			continue
		}
		next[k] = v
	}
	if len(next) > maxMetadata {
		return nil, invalid("parameter_invalid", "metadata", "Metadata has at most 50 keys.")
	}
	return next, nil
}
