package remote

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

// Address is the address of a remote. Its scheme determines the helper program, uwf-remote-<scheme>.
type Address struct {
	Scheme string
	Text   string // with a scheme, or an absolute path
}

// ParseAddress parses scheme://…, [user@]host:path as in ssh, or a directory, relative to dir. Errors are
// [*protocol.Error] (code usage) and contain no password.
func ParseAddress(text, dir string) (Address, error) {
	wrong := func(why string) (Address, error) {
		return Address{}, (&protocol.Error{Code: protocol.CodeUsage, Message: "invalid remote address: it " + why}).
			Because("no-address")
	}
	if text == "" || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r == 0x7f ||
			r == '\uFFFD'
	}) {
		return wrong("is empty, too long, or has invalid characters")
	}
	secret := (&protocol.Error{Code: protocol.CodeUsage,
		Message: "invalid remote address: it contains a password"}).Because("password-in-address")
	scheme, rest, found := strings.Cut(text, "://")
	switch {
	case !found && credentials().MatchString(text) && !drive().MatchString(text):
		return Address{}, secret
	case !found && isSSH(text):
		return Address{Scheme: "ssh", Text: text}, nil
	case !found:
		if !filepath.IsAbs(text) {
			text = filepath.Join(dir, text)
		}
		return Address{Scheme: "file", Text: filepath.Clean(text)}, nil
	case !regexp.MustCompile(`^[a-z][a-z0-9+-]{0,31}$`).MatchString(scheme):
		return wrong("has an invalid scheme")
	}
	u, err := url.Parse(text)
	if err != nil {
		return wrong("cannot be parsed")
	}
	if _, has := u.User.Password(); has || strings.Contains(u.User.Username(), ":") || holdsSecret(u) {
		return Address{}, secret
	}
	if scheme == "file" {
		path, local := strings.CutPrefix(strings.TrimPrefix(rest, "localhost"), "/")
		if !local {
			return wrong("needs an absolute path: file:///path")
		}
		path, err := url.PathUnescape("/" + path)
		if err != nil {
			return wrong("cannot be parsed")
		}
		if runtime.GOOS == "windows" {
			path = filepath.FromSlash(strings.TrimPrefix(path, "/"))
		}
		return Address{Scheme: "file", Text: filepath.Clean(path)}, nil
	}
	return Address{Scheme: scheme, Text: text}, nil
}

// credentials matches name:password@…, also in the form host:path. In ssh://host/… an @ can be part of the
// path.
var credentials = lazyregexp.New(`^[^/\\@]+?(:|%3[aA]).*@`)

// drive matches the start of a Windows path.
var drive = lazyregexp.New(`^[A-Za-z]:[/\\]`)

// holdsSecret reports whether a parameter of a URL is a password.
func holdsSecret(u *url.URL) bool {
	for key := range u.Query() {
		key = strings.ToLower(key)
		if strings.Contains(key, "password") && !strings.HasSuffix(key, "file") || strings.Contains(key, "secret") ||
			strings.Contains(key, "token") {
			return true
		}
	}
	return false
}

// IsAddress reports whether text is an address rather than the name of a remote: it has a scheme, is
// host:path, or is a directory that starts with a slash or a dot.
func IsAddress(text string) bool {
	return strings.Contains(text, "://") || isSSH(text) || strings.HasPrefix(text, "/") ||
		strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../")
}

// isSSH distinguishes host:path from a directory as git does: there is a colon before the first slash, and it
// doesn't follow a drive letter.
func isSSH(text string) bool {
	colon := strings.IndexByte(text, ':')
	slash := strings.IndexAny(text, `/\`)
	return colon > 1 && (slash < 0 || colon < slash) && !(strings.HasPrefix(text, ".") && strings.Trim(text[:colon],
		".") == "")
}

// Program returns the name of the helper program.
func (a Address) Program() string { return "uwf-remote-" + a.Scheme }

// SSH is an ssh address.
type SSH struct {
	Host string // includes the user
	Port string // "" means as configured in ssh
	Path string
}

// SSH parses an ssh address. It ensures that no part can be mistaken for an option of ssh. Errors are
// [*protocol.Error] (code usage).
func (a Address) SSH() (s SSH, err error) {
	wrong := func(format string, args ...any) (SSH, error) {
		return SSH{}, &protocol.Error{Code: protocol.CodeUsage, Message: fmt.Sprintf(format, args...)}
	}
	host := ""
	if rest, ok := strings.CutPrefix(a.Text, "ssh://"); ok {
		u, err := url.Parse(a.Text)
		if err != nil || u.RawQuery != "" || u.Fragment != "" {
			return wrong("%q is not an ssh address: want ssh://[user@]host[:port]/path", rest)
		}
		host, s.Port, s.Path = u.Hostname(), u.Port(), u.Path
		if name := u.User.Username(); name != "" {
			host = name + "@" + host
		}
		if strings.HasPrefix(s.Path, "/~") {
			s.Path = s.Path[1:]
		}
	} else {
		host, s.Path, _ = strings.Cut(a.Text, ":")
	}
	s.Host = host
	name, at, named := strings.Cut(host, "@")
	if !named {
		name, at = "x", host
	}
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.+-]*$`).MatchString(name):
		return wrong("has an invalid ssh user %q", name)
	case !regexp.MustCompile(`^[A-Za-z0-9_.:][A-Za-z0-9_.:%-]*$`).MatchString(at):
		return wrong("has an invalid ssh host %q", at)
	case !regexp.MustCompile(`^[0-9]{0,5}$`).MatchString(s.Port):
		return wrong("has an invalid port %q", s.Port)
	case strings.Trim(s.Path, "/") == "":
		return wrong("names no directory on %s", at)
	}
	if strings.HasPrefix(s.Path, "-") {
		s.Path = "./" + s.Path
	}
	return s, nil
}

// Args returns the arguments of ssh that start the remote end. If the connection dies, ssh ends after three
// keep-alive intervals.
func (s SSH) Args() []string {
	args := []string{"-T", "-o", "ServerAliveInterval=15"}
	if s.Port != "" {
		args = append(args, "-p", s.Port)
	}
	return append(args, "--", s.Host, "uwf remote serve "+quoted(s.Path))
}

// quoted quotes a string as one word for any login shell.
func quoted(word string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(word) + "'"
}
