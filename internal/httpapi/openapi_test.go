package httpapi

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/openapi.yaml")

const openAPIFile = "../../docs/openapi.yaml"

// TestOpenAPICommitted: the committed document is what the code says. After a
// wanted change: go test ./internal/httpapi -run OpenAPICommitted -update
func TestOpenAPICommitted(t *testing.T) {
	got, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(openAPIFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("docs/openapi.yaml is not what the code describes; run this test with -update and look at the difference")
	}
}
