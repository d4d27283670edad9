// Package secret defines which values of an environment are secrets ([Named], [OfVariable], [OfDotEnv]), and
// hides them in stored, printed or forwarded text ([Set]).
//
// A [Set] recognizes a secret in plain text, in a JSON string, in a URL, and in base64 (standard and
// URL-safe) at any offset in a longer text. It ignores line breaks within a secret, because programs wrap
// long lines. It doesn't recognize a secret that is otherwise encoded, split, encrypted or compressed.
package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// Shortest is the minimum length of a secret, in bytes. A shorter text protects nothing, and hiding it would
// hide unrelated text.
const Shortest = 8

// Named reports whether a variable with this name contains a secret, such as OPENAI_API_KEY, DB_PASSWORD or
// npmToken.
func Named(name string) bool {
	name = strings.ToUpper(name)
	words := words(name)
	if len(words) == 0 || slices.Contains(about, words[len(words)-1]) {
		return false
	}
	for _, part := range []string{"PASSW", "PASSPHRASE", "SECRET", "CREDENTIAL", "APIKEY", "AUTHORIZATION"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	for _, word := range words {
		if word != "PASS" {
			word = strings.TrimSuffix(word, "S")
		}
		if strings.HasSuffix(word, "KEY") || strings.HasSuffix(word, "TOKEN") || slices.Contains(whole, word) {
			return true
		}
	}
	return len(words) > 1 && words[len(words)-1] == "PWD" // PWD itself is a directory
}

var (
	// whole lists words that mean a secret only on their own.
	whole = []string{"AUTH", "PAT", "PSK", "JWT", "COOKIE", "BEARER", "WEBHOOK", "PASS", "PW", "MNEMONIC"}
	// about lists last words of names that describe something about a secret.
	about = []string{"FILE", "PATH", "DIR", "SOCK", "SOCKET", "TYPE", "NAME", "MODE", "ALGORITHM", "LENGTH", "SIZE",
		"TTL", "ENABLED"}
)

// OfDotEnv is [OfVariable] for a file intended for secrets: a value also counts regardless of its name unless
// it consists of plain words and short numbers, such as "production", "eu-central-1" or
// "db.example.org:5432".
func OfDotEnv(name, value string) []string {
	if found, isURL := ofURL(value, true); isURL {
		return found
	}
	if len(value) < Shortest || isSetting(value) || !Named(name) && !isSeed(name, value) && isPlain(value) {
		return nil
	}
	return []string{value}
}

// ofURL returns the secrets in a URL: its password, parameters with a secret's name and, if the whole URL is
// a secret, as for webhooks, key-like parts of its path and parameters.
func ofURL(value string, guarded bool) (found []string, isURL bool) {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok || !urlScheme().MatchString(scheme) {
		return nil, false
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at > len(authority) && strings.Contains(authority, ":") &&
		strings.IndexByte(authority, '@') < 0 {
		authority = rest[:at+1] // a password with an unescaped slash
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, both := strings.Cut(authority[:at], ":")
		if !both {
			password = user // often a token without a user
		}
		if both || !isPlain(password) {
			found = append(found, "://"+authority[:at+1])
			for _, p := range []string{password, unescaped(password)} {
				if len(p) >= Shortest && !isSetting(p) && !slices.Contains(found, p) {
					found = append(found, p)
				}
			}
		}
	}
	path, query, _ := strings.Cut(rest[len(authority):], "?")
	if m := webhook().FindString(value); m != "" {
		found = append(found, m)
	}
	for element := range strings.SplitSeq(path, "/") {
		if guarded && len(element) >= 16 && !isPlain(element) {
			found = append(found, element)
		}
	}
	for _, parameter := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' || r == '#' }) {
		name, v, _ := strings.Cut(parameter, "=")
		if len(v) >= Shortest && (Named(name) || name == "sig" || guarded && !isPlain(v)) {
			found = append(found, v)
		}
	}
	return found, true
}

var urlScheme = lazyregexp.New(`^[a-zA-Z][a-zA-Z0-9+.-]*$`)

func unescaped(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// isSetting reports whether a value isn't worth protecting, regardless of its name: a switch, a short number,
// a file path, or a placeholder password. Hiding a word like postgres would make many texts unreadable.
func isSetting(value string) bool {
	switch strings.ToLower(value) {
	case "disabled", "required", "optional", "undefined", "changeme", "password", "postgres", "example":
		return true
	}
	// Most values need neither expression.
	return strings.Trim(value, "-+.0123456789") == "" && shortNumber().MatchString(value) ||
		strings.ContainsAny(value[:min(pathMark, len(value))], `/\`) && filePath().MatchString(value)
}

const pathMark = 3 // bytes within which a file's path has its first separator

var (
	shortNumber = lazyregexp.New(`^[-+]?[0-9]{0,7}(\.[0-9]+)?$`)
	// A secret in base64 can start with a slash, but contains no dot.
	filePath = lazyregexp.New(`^(~|[A-Za-z]:|\.{1,2})?[/\\][\w. /\\-]*\.[A-Za-z0-9]{1,8}$|^(~|[A-Za-z]:|\.{1,2})?[/\\]([a-z][a-z0-9_-]{0,15}[/\\]?)+$`)
)

// isPlain reports whether a text consists of plain words and short numbers.
func isPlain(value string) bool {
	for _, piece := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("-._/\\:@,; ~", r) }) {
		if !plainPiece().MatchString(piece) {
			return false
		}
	}
	return true
}

// Words in one case, numbers, and short combinations such as v2, 4o and x86.
var plainPiece = lazyregexp.New(`^([A-Z]?[a-z]{1,15}[0-9]{0,2}|[A-Z]{1,15}[0-9]{0,2}|[0-9]{1,8}[a-z]{0,2}|[A-Z][a-z]+[A-Z][a-z]+)$`)

// OfVariable returns the secrets in an environment variable: its value if the name indicates a secret and,
// for any name, the password in a URL or connection string, and texts with the format of a key. [OfDotEnv]
// finds more.
func OfVariable(name, value string) (found []string) {
	for _, s := range inVariable(name, value) {
		if len(s) >= Shortest {
			found = append(found, s)
		}
	}
	return found
}

// Guarded reports whether an environment variable is withheld from programs that untrusted input can control:
// it contains a secret, including one that is too short to be hidden.
func Guarded(name, value string) bool { return len(inVariable(name, value)) > 0 }

// inVariable is OfVariable including short secrets.
func inVariable(name, value string) []string {
	found, isURL := ofURL(value, Named(name))
	shaped := slices.Concat(tokens(value), ofPairs(value))
	if strings.Contains(value, "@") {
		if m := dataSource().FindStringSubmatch(value); m != nil {
			shaped = append(shaped, m[1])
		}
	}
	for _, s := range shaped {
		if !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	if whole := !isURL && Named(name) || isPrivateKey(value) || isSeed(name, value); whole && value != "" &&
		!isSetting(value) {
		return []string{value}
	}
	return found
}

// tokens returns the texts with the format of a key. It looks for the beginning of one, in a long run of a key's
// characters, first: each program of a step examines all environment variables, of which few have one.
func tokens(value string) []string {
	begin := 0 // of the run
	for i := range len(value) {
		if !strings.ContainsRune(tokenChars, rune(value[i])) {
			begin = i + 1
		} else if i+1-begin == shortestToken {
			if slices.ContainsFunc(tokenStarts(), func(s string) bool { return strings.Contains(value[begin:], s) }) {
				return tokenShape().FindAllString(value, -1)
			}
			return nil
		}
	}
	return nil
}

const (
	tokenChars = "0123456789-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	// shortestToken is the length of the shortest text that tokenShape matches.
	shortestToken = 15
)

// tokenStarts returns the first three characters of each text that tokenShape matches, and more where they are common in
// other texts, such as paths.
func tokenStarts() []string {
	return strings.Fields("sk_ rk_ sk- ghp gho ghu ghs ghr github_pat_ glp glc gld glr xox xap AKI ASI AIz ya2 AGE npm_ pyp hf_ SG. hvs hvb hvr dop shp eyJ")
}

func isPrivateKey(value string) bool {
	return strings.Contains(value, "-----BEGIN ") && privateKey().MatchString(value)
}

var (
	// tokenShape matches well-known key formats.
	tokenShape = lazyregexp.New(`\b(?:[sr]k_(?:live|test|prod)_?\w{8,}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|gl(?:pat|ptt|cbt|dt|rt)-[\w-]{16,}` +
		`|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|AGE-SECRET-KEY-[0-9A-Z-]{8,}|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{20,}` +
		`|SG\.[\w-]{16,}\.[\w-]{16,}|hv[sbr]\.[\w-]{20,}|dop_v1_\w{20,}|shp(?:at|ca|pa|ss)_\w{20,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)`)
	privateKey = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)
	// dataSource matches user:password@tcp(host)/name.
	dataSource = lazyregexp.New(`^[^\s:/@]+:([^\s@]+)@[a-z]*\(`)
	webhook    = lazyregexp.New(`(?i)://(?:hooks\.slack\.com|(?:\w+\.)?discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com|chat\.googleapis\.com/v1/spaces|api\.telegram\.org)/[^?#]+`)
	pairName   = lazyregexp.New(`^[\w. -]+$`)
	seedPhrase = lazyregexp.New(`^[a-z]{3,10}(?: [a-z]{3,10}){11,23}$`)
)

// ofPairs returns the values of settings with a secret's name in a list, as in connection strings and
// headers: "Server=db;Password=…", "host=db password=…".
func ofPairs(value string) (found []string) {
	parts := strings.Split(value, ";")
	if len(parts) == 1 {
		parts = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	}
	for _, part := range parts {
		name, v, ok := strings.Cut(part, "=")
		name, v = strings.TrimSpace(name), strings.Trim(strings.TrimSpace(v), `"'`)
		named := ok && v != "" && (Named(strings.ReplaceAll(name, " ", "_")) || strings.EqualFold(name, "pwd") ||
			strings.EqualFold(name, "sig") || strings.EqualFold(name, "SharedAccessSignature"))
		if named && pairName().MatchString(name) && !isSetting(v) {
			found = append(found, v)
		}
	}
	return found
}

// isSeed reports whether a variable named seed or phrase is one for keys: the words of a wallet, or many
// random digits; not a number for tests or a list of hosts.
func isSeed(name, value string) bool {
	words := words(name)
	if !slices.ContainsFunc(words, func(w string) bool {
		return slices.Contains([]string{"SEED", "PHRASE", "WALLET", "RECOVERY"}, w)
	}) {
		return false
	}
	return seedPhrase().MatchString(value) || len(value) >= 16 && !isPlain(value) && !strings.Contains(value, "://")
}

func words(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}

// Looks finds texts that look like a key: the formats of large services, and .env settings with a secret's
// name.
type Looks struct{ form, setting *regexp.Regexp }

// NewLooks returns a finder.
func NewLooks() Looks {
	return Looks{
		form: regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]{20}|[sr]k_(?:live|test)_[A-Za-z0-9]{12}|gh[pousr]_[A-Za-z0-9]{30}|` +
			`github_pat_[A-Za-z0-9_]{30}|glpat-[A-Za-z0-9_-]{20}|xox[abeoprs]-[A-Za-z0-9-]{10}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|` +
			`AIza[A-Za-z0-9_-]{35}|hf_[A-Za-z0-9]{30}|npm_[A-Za-z0-9]{36}|` +
			`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10})|-----BEGIN [A-Z ]*PRIVATE KEY`),
		setting: regexp.MustCompile(`\b([A-Z][A-Z0-9_]{2,63})=["']?([A-Za-z0-9+/_.~-]{8,})`),
	}
}

// shownOfKey is the number of bytes of a key that are shown, enough to recognize its type.
const shownOfKey = 8

// In returns the beginning of the first key in a text, or the name of its setting; "" if there is none.
func (l Looks) In(text []byte) string {
	if found := l.form.Find(text); found != nil {
		return string(found[:shownOfKey]) + "…"
	}
	for _, m := range l.setting.FindAllSubmatch(text, -1) {
		if name, value := string(m[1]), string(m[2]); Named(name) && !isSetting(value) && !isPlain(value) {
			return name
		}
	}
	return ""
}
