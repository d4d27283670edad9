//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

const secret = "a-token-of-more-than-thirty-two-letters"

// shared is a directory with a token and a certificate, and a home.
type shared struct {
	*testing.T
	dir   string
	roots *x509.CertPool
}

func newShared(t *testing.T) shared {
	t.Helper()
	s := shared{T: t, dir: t.TempDir(), roots: x509.NewCertPool()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	is := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "uwf"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"uwf.example.org", "*.team.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	s.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), 0o644)
	s.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	s.write("token", secret+"\n", 0o600)
	parsed, err := x509.ParseCertificate(cert)
	require.NoError(t, err)
	s.roots.AddCert(parsed)
	return s
}

func (s shared) write(name, text string, mode os.FileMode) {
	s.Helper()
	require.NoError(s, os.WriteFile(filepath.Join(s.dir, name), []byte(text), mode))
	require.NoError(s, os.Chmod(filepath.Join(s.dir, name), mode))
}

// serve runs the program until the test ends and returns its output. to is the address with its port.
func (s shared) serve(args ...string) (at started, stop func()) {
	s.Helper()
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, env.Env{
			Args: args, Dir: s.dir, Environ: []string{"UWF_HOME=" + filepath.Join(s.dir, "home")}, Now: time.Now, Rand: rand.Reader,
			Stdin: strings.NewReader(""), Stdout: write, Stderr: io.Discard,
		})
		_ = write.Close() // an in-memory pipe
	}()
	stop = func() { cancel(); <-ended; ended <- 0 }
	s.Cleanup(stop)
	require.NoError(s, json.NewDecoder(read).Decode(&at))
	return at, stop
}

// browser connects to another address than the one in the URL.
func (s shared) browser(network, to string) *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(s, err)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, to)
		},
	}
	s.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (s shared) ask(c *http.Client, method, address string, header map[string]string, form url.Values) (*http.Response, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, address, strings.NewReader(form.Encode()))
	require.NoError(s, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	r.Host = r.Header.Get("Host")
	answer, err := c.Do(r)
	require.NoError(s, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	require.NoError(s, answer.Body.Close())
	for k, v := range headers() {
		require.Equal(s, v, answer.Header.Get(k), k)
	}
	return answer, string(body)
}

// An address outside this machine requires a token that only the user can read, and TLS or a proxy. The error
// for a missing option includes a complete command line.
func TestListenIsRefused(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	s.write("open", secret, 0o644)
	s.write("short", "secret", 0o600)
	s.write("words", strings.Repeat("two words ", 9), 0o600)
	const with = " --tls-cert cert.pem --tls-key key.pem"
	for _, line := range []string{
		"--listen 0.0.0.0:0",
		"--listen :0",
		"--listen [::]:0",
		"--listen 0.0.0.0:0 --token-file token",
		"--listen 0.0.0.0:0" + with,
		"--listen 127.0.0.1:0 --token-file token",
		"--listen 0.0.0.0:0 --token-file open" + with,
		"--listen 0.0.0.0:0 --token-file short" + with,
		"--listen 0.0.0.0:0 --token-file words" + with,
		"--listen 0.0.0.0:0 --token-file none" + with,
		"--listen 0.0.0.0:0 --token-file . " + with,
		"--listen 0.0.0.0:0 --token-file token --tls-cert token --tls-key x",
		"--listen here",
		"--listen 127.0.0.1:0 --port 1",
		"--socket s",
		"--address https://x",
		"--socket s --address https://x",
		"--socket s --address http://x --token-file token",
		"--socket s --address https://x/path --token-file token",
		"--socket s --address https://u:p@x --token-file token",
		"--socket token --address https://x --token-file token",
		"--socket s --address https://x --token-file token" + with,
		"--socket s --address https://x --token-file token --listen :1",
	} {
		var stderr bytes.Buffer
		status := run(t.Context(), env.Env{
			Args: append(strings.Fields(line), "--format", "text"), Dir: s.dir, Environ: []string{"UWF_HOME=" + filepath.Join(s.dir, "home")}, Now: time.Now, Rand: rand.Reader,
			Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr,
		})
		require.Equal(t, 2, status, "%s: %s", line, &stderr)
		prosetest.Text(t, stderr.String(), line)
		require.Contains(t, stderr.String(), "hint: ", line)
		require.NotContains(t, stderr.String(), secret, line)
	}
}

// A user with the token signs in once and gets to the requested page; a program sends the token with each
// request. Nothing else grants access, under any name.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	at, _ := s.serve("--listen", "127.0.0.1:0", "--token-file", "token", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	require.NotContains(t, at.Address, secret)
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(at.Address, "https://"), "/"))
	require.NoError(t, err)
	s.signsIn(s.browser("tcp", "127.0.0.1:"+port), "https://uwf.example.org:"+port, at)
	b := s.browser("tcp", "127.0.0.1:"+port)
	bearer := map[string]string{"Authorization": "Bearer " + secret}
	for host, want := range map[string]int{
		"https://a.team.example.org:" + port: http.StatusOK, "https://127.0.0.1:" + port: http.StatusOK,
	} {
		answer, _ := s.ask(b, http.MethodGet, host, bearer, nil)
		require.Equal(t, want, answer.StatusCode, host)
		require.Equal(t, "HTTP/2.0", answer.Proto)
	}
	plain, err := http.Get("http://127.0.0.1:" + port)
	require.NoError(t, err)
	require.NoError(t, plain.Body.Close())
	require.Equal(t, http.StatusBadRequest, plain.StatusCode, "without TLS there is nothing")
	old := &tls.Config{RootCAs: s.roots, ServerName: "uwf.example.org", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	_, err = tls.Dial("tcp", "127.0.0.1:"+port, old)
	require.Error(t, err)
}

// The same holds behind a proxy. The socket is accessible to the user and the group of its directory. The
// socket of a killed server is replaced, that of a running one is not.
func TestSocket(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	dead, err := net.Listen("unix", filepath.Join(s.dir, "s"))
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	args := []string{"--socket", "s", "--address", "https://uwf.example.org/", "--token-file", "token"}
	at, stop := s.serve(args...)
	require.Equal(t, "https://uwf.example.org/", at.Address)
	info, err := os.Stat(filepath.Join(s.dir, "s"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o660), info.Mode().Perm())
	require.Equal(t, 75, run(t.Context(), env.Env{
		Args: args, Dir: s.dir, Environ: []string{"UWF_HOME=" + filepath.Join(s.dir, "home")}, Now: time.Now, Rand: rand.Reader, Stdout: io.Discard, Stderr: io.Discard,
	}))
	b := s.browser("unix", filepath.Join(s.dir, "s"))
	proxied := http.Client{Jar: b.Jar, CheckRedirect: b.CheckRedirect, Transport: proxy{b.Transport}}
	s.signsIn(&proxied, "https://uwf.example.org", at)
	stop()
	_, err = os.Lstat(filepath.Join(s.dir, "s"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// proxy terminates TLS.
type proxy struct{ http.RoundTripper }

func (p proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	r.URL.Scheme = "http"
	return p.RoundTripper.RoundTrip(r)
}

// signsIn checks the sign-in at an address.
func (s shared) signsIn(b *http.Client, site string, at started) {
	s.Helper()
	for name, header := range map[string]map[string]string{
		"nothing": nil, "a wrong token": {"Authorization": "Bearer " + secret + "x"}, "part of the token": {"Authorization": "Bearer " + secret[:10]},
		"no token": {"Authorization": "Bearer "}, "another way": {"Authorization": "Basic " + secret}, "a forged cookie": {"Cookie": "__Host-uwf-web=x"},
		"the token as a cookie": {"Cookie": "__Host-uwf-web=" + secret}, "the key of an address": nil,
	} {
		path := "/threads?q=x"
		if name == "the key of an address" {
			path = "/?key=" + secret
		}
		answer, page := s.ask(b, http.MethodGet, site+path, header, nil)
		require.Equal(s, http.StatusUnauthorized, answer.StatusCode, name)
		require.Contains(s, answer.Header.Get("WWW-Authenticate"), "Bearer", name)
		require.Contains(s, page, `type="password"`, name)
		require.NotContains(s, page, "<script", name)
		require.Empty(s, answer.Cookies(), name)
	}
	for _, asset := range []string{"/style.css", "/icon.svg"} {
		answer, _ := s.ask(b, http.MethodGet, site+asset, nil, nil)
		require.Equal(s, http.StatusOK, answer.StatusCode, asset)
	}
	right := url.Values{"secret": {secret}}
	for name, c := range map[string]struct {
		form   url.Values
		header map[string]string
	}{
		"a wrong token":  {url.Values{"secret": {secret + "x"}}, map[string]string{"Origin": site}},
		"no token":       {url.Values{}, map[string]string{"Origin": site}},
		"another site":   {right, map[string]string{"Origin": "https://evil.example"}},
		"without TLS":    {right, map[string]string{"Origin": strings.Replace(site, "https", "http", 1)}},
		"nowhere":        {right, nil},
		"an opaque site": {right, map[string]string{"Origin": "null"}},
	} {
		answer, page := s.ask(b, http.MethodPost, site, c.header, c.form)
		require.Equal(s, http.StatusUnauthorized, answer.StatusCode, name)
		prosetest.Text(s, read(page), name)
		require.Empty(s, answer.Cookies(), name)
	}
	answer, _ := s.ask(b, http.MethodGet, site, map[string]string{"Host": "evil.example", "Authorization": "Bearer " + secret}, nil)
	require.Equal(s, http.StatusMisdirectedRequest, answer.StatusCode, "DNS rebinding")
	answer, page := s.ask(b, http.MethodGet, site+"/threads", map[string]string{"Authorization": "Bearer " + secret}, nil)
	require.Equal(s, http.StatusOK, answer.StatusCode)
	require.Contains(s, page, `<a href="/threads"`)
	require.NotContains(s, page, secret)

	for path, to := range map[string]string{
		"/threads?q=a+b": "/threads?q=a+b", "//evil.example/x": "/evil.example/x", "/%5Cevil.example": "/%5Cevil.example", "/x/../..//evil.example": "/evil.example", "/a%0d%0aSet-Cookie:x": "/a%0D%0ASet-Cookie:x",
	} {
		b.Jar, _ = cookiejar.New(nil) // never fails
		answer, _ := s.ask(b, http.MethodPost, site+path, map[string]string{"Origin": site, "Sec-Fetch-Site": "same-origin"}, right)
		require.Equal(s, http.StatusSeeOther, answer.StatusCode, path)
		require.Equal(s, to, answer.Header.Get("Location"))
		c := answer.Cookies()[0]
		require.True(s, c.Secure && c.HttpOnly && c.SameSite == http.SameSiteStrictMode && c.Path == "/" && c.Domain == "", c)
		require.Equal(s, "__Host-uwf-web", c.Name)
		require.NotContains(s, c.Value, secret)
	}
	answer, _ = s.ask(b, http.MethodGet, site+"/threads", nil, nil)
	require.Equal(s, http.StatusOK, answer.StatusCode, "the cookie is enough")
	for name, header := range map[string]map[string]string{
		"another site": {"Sec-Fetch-Site": "cross-site"}, "another host of the domain": {"Sec-Fetch-Site": "same-site"}, "a frame": {"Sec-Fetch-Dest": "iframe"},
		"a script of another site": {"Origin": "https://evil.example"}, "a page without TLS": {"Origin": strings.Replace(site, "https", "http", 1)},
	} {
		answer, _ := s.ask(b, http.MethodGet, site, header, nil)
		require.Equal(s, http.StatusForbidden, answer.StatusCode, name)
	}
}
