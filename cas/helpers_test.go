package cas_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
)

// parseJSON parses JSON; numbers stay as written.
func parseJSON(t testing.TB, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	return v
}

func deref(h *cas.Hash) cas.Hash {
	if h == nil {
		return ""
	}
	return *h
}

// textNode returns a node with a string, of an arbitrary type.
func textNode(t testing.TB, a cas.Algorithm, text string) cas.Node {
	t.Helper()
	payload, err := cas.Encode(text)
	require.NoError(t, err)
	const typ = "7VQ43ZSJTEWA7"
	return cas.Node{Hash: a.Sum(typ, payload), Type: typ, Payload: payload, Timestamp: 1780000000000}
}

func lower(s string) string { return strings.ToLower(s) }
