//go:build browser

package webtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

const public = "uwf.example.org"

// certificate writes a certificate for the public name.
func certificate(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{public}}
	der, err := x509.CreateCertificate(rand.Reader, is, is, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// nginx runs nginx with the configuration from the docs.
func (w *world) nginx(port, socket string) {
	w.Helper()
	doc, err := os.ReadFile(filepath.Join(repo(w.T), "docs", "web.md"))
	require.NoError(w, err)
	block := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(doc)
	require.NotNil(w, block)
	dir := w.TempDir()
	certificate(w.T, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	server := strings.NewReplacer("listen 443", "listen 127.0.0.1:"+port, "/etc/ssl/uwf", dir, "/srv/uwf-web/web.sock", socket).Replace(string(block[1]))
	require.Contains(w, server, socket)
	conf := "daemon off; pid nginx.pid; error_log stderr;\nevents {}\nhttp { access_log off;\n"
	if os.Getuid() == 0 {
		conf = "user root;\n" + conf
	}
	for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf += of + "_temp_path " + of + ";\n"
	}
	require.NoError(w, os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf+server+"}\n"), 0o600))
	cmd := exec.Command("nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr")
	cmd.Stderr = os.Stderr
	require.NoError(w, cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // its exit status is that of the signal
	})
	require.Eventually(w, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		return err == nil && conn.Close() == nil
	}, patience, pause)
}

// Behind nginx, configured as in the docs, a user signs in once, answers, and gets live updates.
func TestBehindNginx(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("NOT RUN: the pages behind nginx, which is not here.")
	}
	w := newWorld(t)
	id := w.uwf("run", "./release.yaml", "-p", "version 8")
	const secret = "a-token-of-more-than-thirty-two-letters"
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "token"), []byte(secret), 0o600))
	port, socket := freePort(t), filepath.Join(w.home, "s")
	w.nginx(port, socket)
	w.base = fmt.Sprintf("https://%s:%s/", public, port)
	require.Equal(t, w.base, w.start("--actions", "--socket", socket, "--address", w.base, "--token-file", "token"))
	w.browse(w.base+"thread/"+id, chromedp.Flag("host-resolver-rules", "MAP "+public+" 127.0.0.1"), chromedp.Flag("ignore-certificate-errors", true))
	for _, width := range []int64{360, 1440} {
		for _, dark := range []bool{false, true} {
			w.screen(width, dark)
			w.accessible("the page to sign in on")
			require.Zero(t, evaluate[int](w, "document.documentElement.scrollWidth - document.documentElement.clientWidth"))
		}
	}
	w.picture("sign-in")
	w.tabTo("#secret")
	w.do(chromedp.KeyEvent("not it"), chromedp.KeyEvent(kb.Enter))
	w.until("This is not the token")
	w.tabTo("#secret")
	w.do(chromedp.KeyEvent(secret), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("form.act")))
	w.until("live")
	w.mu.Lock()
	for _, said := range w.complain {
		require.Contains(t, said, "401", "that one has to sign in is all that the browser says")
	}
	w.complain = nil
	w.mu.Unlock()
	w.do(chromedp.Focus(chromedp.CSS(`[name="field.$status"]`)), chromedp.KeyEvent("a"), chromedp.SendKeys(chromedp.CSS(`[name="field.comment"]`), "From home"))
	w.press("answer")
	w.until("Released: From home")
	w.until("completed")
	w.quiet()
}
