package llm

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// served returns the reply to a request.
func served(t *testing.T, r modelcall.Request) (out modelcall.Reply) {
	t.Helper()
	in, err := json.Marshal(r)
	require.NoError(t, err)
	var printed bytes.Buffer
	require.NoError(t, Serve(t.Context(), bytes.NewReader(in), &printed))
	require.NoError(t, json.Unmarshal(printed.Bytes(), &out))
	return out
}

func TestServe(t *testing.T) {
	t.Parallel()
	e := serve(t, says(`{"n": 1}`))
	got := served(t, modelcall.Request{Verb: modelcall.Extract, Endpoint: e.config(), System: "Read this.", User: "the answer"})
	require.Nil(t, got.Error)
	require.JSONEq(t, `{"n": 1}`, got.Text)
	require.Equal(t, 1, got.Usage.Turns)

	got = served(t, modelcall.Request{Verb: "sing", Endpoint: e.config()})
	require.NotNil(t, got.Error)
	require.False(t, got.Error.Machine)

	e = serve(t, reply(401, "application/json", `{"error": {"message": "no"}}`))
	got = served(t, modelcall.Request{Verb: modelcall.Probe, Endpoint: e.config()})
	require.NotNil(t, got.Error)
	require.True(t, got.Error.Machine)

	require.Error(t, Serve(t.Context(), strings.NewReader("x"), &bytes.Buffer{}))
}
