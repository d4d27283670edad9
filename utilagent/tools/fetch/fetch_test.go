package fetch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/tools"
)

func fetching(t *testing.T, f Options) *tools.Registry {
	t.Helper()
	w, err := tools.OpenWorkspace(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	r, err := tools.NewRegistry(tools.ReadFile(w), New(w, f))
	require.NoError(t, err)
	return r
}

type args = map[string]any

func call(t *testing.T, r *tools.Registry, name string, a args) string {
	t.Helper()
	res, err := r.Call(t.Context(), name, a)
	require.NoError(t, err)
	require.Equal(t, strings.HasPrefix(res.Text, "Error: "), res.Failed, res.Text)
	return res.Text
}

func TestFetchIsOffUnlessAllowed(t *testing.T) {
	t.Parallel()
	r := fetching(t, Options{})
	require.Contains(t, call(t, r, "fetch_url", args{"url": "https://example.org"}), "UWF_BUILTIN_ALLOW_FETCH=1")
	for _, s := range r.Specs() {
		require.NotEqual(t, "fetch_url", s.Name)
	}
}

// A name that resolves to this machine is rejected when it is dialed.
func TestPrivateAddressesAreNotDialled(t *testing.T) {
	t.Parallel()
	asked := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer s.Close()
	r := fetching(t, Options{Allow: true})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, u := range []string{s.URL, "http://localhost" + port, "http://[::ffff:127.0.0.1]" + port, "http://0x7f.1" + port, "http://2130706433" + port} {
		require.True(t, strings.HasPrefix(call(t, r, "fetch_url", args{"url": u}), "Error: "), u)
	}
	require.False(t, asked)
	for _, u := range []string{"file:///etc/passwd", "ftp://example.org", "example.org", "http://u:p@example.org", "http://", "::"} {
		require.True(t, strings.HasPrefix(call(t, r, "fetch_url", args{"url": u}), "Error: "), u)
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	page := func(path, kind, body string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		})
	}
	page("/page", "text/html", `<title>T</title><nav>menu</nav><h1>Head</h1><p>Some <a href="../x">link</a></p><table><tr><th>a<th>b<tr><td>1<td>2</table><script>evil()</script>`)
	page("/latin", "text/plain; charset=iso-8859-1", "caf\xe9")
	page("/gbk", "text/html", "<meta charset=gbk><p>\xc4\xe3\xba\xc3</p>")
	page("/bin", "image/png", "\x89PNG")
	page("/long", "text/plain", strings.Repeat("0123456789\n", 10_000))
	page("/huge", "text/plain", strings.Repeat("0123456789abcdef", 400_000))
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	r := fetching(t, Options{Allow: true, Private: true})
	get := func(path string) string { return call(t, r, "fetch_url", args{"url": s.URL + path}) }

	got := get("/page")
	require.Contains(t, got, "/page, 200 OK]\n# T\n\n# Head\n\nSome [link]("+s.URL+"/x)")
	require.Contains(t, got, "| 1 | 2 |")
	require.NotContains(t, got, "evil")
	require.NotContains(t, got, "menu")
	require.Contains(t, get("/latin"), "café")
	require.Contains(t, get("/gbk"), "你好")
	prosetest.Text(t, get("/bin"))
	require.Contains(t, get("/missing"), "404 Not Found")
	prosetest.Text(t, get("/loop"))
	prosetest.Text(t, get("/away"))
	prosetest.Text(t, get("/huge"))

	got = get("/long")
	_, path, found := strings.Cut(got, "the whole page is in ")
	require.True(t, found)
	path, _, _ = strings.Cut(path, ":")
	require.Contains(t, call(t, r, "read_file", args{"path": path, "offset": 9_999.0}), "9999→0123456789")
	require.NoFileExists(t, path+".other")
	_, err := os.Stat(path)
	require.NoError(t, err)
}

func TestBareText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a\nb\nc\n", bareText("<p>a<br/>b<script/>evil()</script><style/>x{}</style><i/>c"))
}
