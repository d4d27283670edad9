package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/util/hostlist"
)

const (
	maxBuffer  = 32 << 10 // of a line, and of a TLS hello
	maxHead    = 64 << 10
	maxHeaders = 100
	connect    = "CONNECT"
)

// request is the head of a request.
type request struct {
	method, path, version string
	host                  hostlist.Host
	port                  uint16
	headers               []string // that are passed on
	length                int64    // of the body
	chunked               bool
}

func (q request) target() string { return net.JoinHostPort(q.host.String(), strconv.Itoa(int(q.port))) }

// readRequest reads a head strictly: two servers must not be able to read it in different ways.
func readRequest(r *bufio.Reader) (request, error) {
	line, err := readLine(r)
	if err != nil {
		return request{}, err
	}
	q, err := parseLine(line)
	if err != nil {
		return request{}, err
	}
	var named []string // by a header Connection: for this proxy only
	seen := map[string]bool{}
	for total := len(line); ; {
		if line, err = readLine(r); err != nil {
			return request{}, err
		}
		if line == "" {
			break
		}
		if total += len(line); total > maxHead || len(q.headers) == maxHeaders {
			return request{}, errors.New("the request head is too large")
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(key) {
			return request{}, errors.New("a header is malformed")
		}
		key, value = strings.ToLower(key), strings.Trim(value, " \t")
		if key == "connection" || key == "proxy-connection" {
			for name := range strings.SplitSeq(strings.ToLower(value), ",") {
				named = append(named, strings.TrimSpace(name))
			}
		}
		if err := q.frame(key, value, seen[key]); err != nil {
			return request{}, err
		}
		seen[key] = true
		q.headers = append(q.headers, line)
	}
	q.headers = slices.DeleteFunc(q.headers, func(line string) bool {
		key, _, _ := strings.Cut(strings.ToLower(line), ":")
		return isHop(key) || slices.Contains(named, key)
	})
	if q.chunked && (seen["content-length"] || q.version == "HTTP/1.0") {
		return request{}, errors.New("the body has two lengths")
	}
	return q, nil
}

// frame takes what a header says of the body.
func (q *request) frame(key, value string, again bool) error {
	var err error
	switch {
	case key == "content-length":
		if q.length, err = strconv.ParseInt(value, 10, 64); !again && err == nil && isDigits(value) {
			return nil
		}
	case key == "transfer-encoding":
		if q.chunked = strings.EqualFold(value, "chunked"); !again && q.chunked {
			return nil
		}
	default:
		return nil
	}
	return fmt.Errorf("a header %s is malformed", key)
}

// isHop reports whether a header ends at this proxy, or is written anew.
func isHop(key string) bool {
	switch key {
	case "host", "connection", "keep-alive", "te", "trailer", "upgrade", "content-length", "transfer-encoding":
		return true
	}
	return strings.HasPrefix(key, "proxy-")
}

func parseLine(line string) (request, error) {
	words := strings.Split(line, " ")
	if len(words) != 3 || !isToken(words[0]) || words[2] != "HTTP/1.1" && words[2] != "HTTP/1.0" {
		return request{}, errors.New("the request line is malformed")
	}
	q := request{method: words[0], version: words[2]}
	target := words[1]
	if q.method != connect {
		const scheme = "http://"
		if len(target) < len(scheme) || !strings.EqualFold(target[:len(scheme)], scheme) {
			return request{}, errors.New("only http:// URLs can be fetched through this proxy, and CONNECT opens tunnels")
		}
		target = target[len(scheme):]
		i := strings.IndexAny(target+"/", "/?")
		target, q.path = target[:i], target[i:]
		if !strings.HasPrefix(q.path, "/") {
			q.path = "/" + q.path
		}
		if !strings.Contains(target[strings.LastIndexByte(target, ']')+1:], ":") {
			target += ":80"
		}
	}
	var err error
	q.host, q.port, err = hostlist.ParseTarget(target)
	return q, err
}

// readLine reads a line that ends with CR and LF, and holds neither nor another control character but tabs.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("a line has more than 32 KB")
	} else if err != nil {
		return "", err
	}
	line, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok || strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return "", errors.New("the request has a malformed line")
	}
	return line, nil
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// write sends the request and its body to the server.
func (q request) write(w io.Writer, body *bufio.Reader) error {
	host := q.target()
	if q.port == 80 {
		host = strings.TrimSuffix(host, ":80")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s\r\nHost: %s\r\nConnection: close\r\n", q.method, q.path, q.version, host)
	for _, h := range q.headers {
		b.WriteString(h + "\r\n")
	}
	switch {
	case q.chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case q.length > 0 || q.method == "POST" || q.method == "PUT":
		fmt.Fprintf(&b, "Content-Length: %d\r\n", q.length)
	}
	if _, err := io.WriteString(w, b.String()+"\r\n"); err != nil {
		return err
	}
	if q.chunked {
		return copyChunks(w, body)
	}
	_, err := io.CopyN(w, body, q.length)
	return err
}

// copyChunks passes a chunked body up to its end, without extensions and trailers.
func copyChunks(w io.Writer, body *bufio.Reader) error {
	for {
		line, err := readLine(body)
		if err != nil {
			return err
		}
		text, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimRight(text, " \t"), 16, 31)
		if err != nil {
			return errors.New("a chunk has a malformed length")
		}
		if _, err := fmt.Fprintf(w, "%x\r\n", n); err != nil {
			return err
		}
		if n == 0 {
			_, err := io.WriteString(w, "\r\n")
			return err
		}
		if _, err := io.CopyN(w, body, int64(n)); err != nil {
			return err
		}
		if end, err := readLine(body); err != nil || end != "" {
			return errors.Join(err, errors.New("a chunk is longer than its length"))
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
}
