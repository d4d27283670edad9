package llm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, answer string
		status       int
		want         []string
		fails        bool
	}{
		"OpenAI":                   {"/v1", `{"object":"list","data":[{"id":"b"},{"id":"a"},{"id":"b"}]}`, 200, []string{"a", "b"}, false},
		"Gemini":                   {"/v1beta/openai", `{"data":[{"id":"models/gemini-x"}]}`, 200, []string{"gemini-x"}, false},
		"a bare list":              {"/v1/", `[{"id":"a"}]`, 200, []string{"a"}, false},
		"models by name":           {"", `{"models":[{"name":"llama"}]}`, 200, []string{"llama"}, false},
		"the whole path":           {"/v1/chat/completions", `{"data":[]}`, 200, nil, false},
		"no such list":             {"/v1", "not found", 404, nil, true},
		"a key that is not known":  {"/v1", `{"error":{"message":"Incorrect API key provided: sk-secret-secret"}}`, 401, nil, true},
		"a page":                   {"/v1", "<html>hello</html>", 200, nil, true},
		"something else than that": {"/v1", `"hello"`, 200, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var path, key string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, key = r.URL.Path, r.Header.Get("Authorization")
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}))
			defer server.Close()
			client := New(config.Endpoint{BaseURL: server.URL + c.base, APIKey: "sk-secret-secret", Model: "m"}, Options{})
			got, err := client.Models(t.Context())
			require.Contains(t, path, "/models")
			require.NotContains(t, path, "chat")
			require.Equal(t, "Bearer sk-secret-secret", key)
			if c.fails {
				prosetest.Error(t, err)
				require.NotContains(t, err.Error(), "sk-secret")
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// For a waiting user, there is no retry that needs a wait.
func TestOnce(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	_, err := New(config.Endpoint{BaseURL: server.URL, Model: "m"}, Options{Once: true}).Complete(t.Context(), Request{Messages: []Message{User("hi")}})
	require.ErrorContains(t, err, "503")
	require.Equal(t, 1, asked)
}
