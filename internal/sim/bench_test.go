package sim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkCreateConfirm is a whole payment without sockets: create, confirm.
func BenchmarkCreateConfirm(b *testing.B) {
	t := &testing.T{}
	r := &rig{t: t, http: &http.Client{}}
	r.opts.DataDir, r.opts.Seed = b.TempDir(), 7
	r.open()
	defer r.close()
	h := r.sim.Handler()
	call := func(path, key, form string) {
		req := httptest.NewRequest("POST", path, strings.NewReader(form))
		req.Header.Set("Authorization", "Bearer "+r.key)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != 200 {
			b.Error(w.Body.String())
		}
	}
	var n atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			number := fmt.Sprint("B", n.Add(1))
			call("/v1/payment_intents", number, pay+number)
		}
	})
}
