package secret

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

// OfVariable returns the secrets in an environment variable: its value if the
// name says so, and whatever the name the password of a URL or of a connection
// string, and what has the shape of a key. [OfDotEnv] knows more.
func OfVariable(name, value string) (found []string) {
	for _, s := range inVariable(name, value) {
		if len(s) >= Shortest {
			found = append(found, s)
		}
	}
	return found
}

// Guarded reports whether a variable of the environment is kept from programs
// that a stranger may steer: it holds a secret, also one too short to be hidden.
func Guarded(name, value string) bool { return len(inVariable(name, value)) > 0 }

// inVariable is OfVariable with short secrets.
func inVariable(name, value string) []string {
	found, isURL := ofURL(value, Named(name))
	shaped := slices.Concat(tokenShape().FindAllString(value, -1), ofPairs(value))
	if m := dataSource().FindStringSubmatch(value); m != nil {
		shaped = append(shaped, m[1])
	}
	for _, s := range shaped {
		if !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	if whole := !isURL && Named(name) || privateKey().MatchString(value) || isSeed(name, value); whole && value != "" && !isSetting(value) {
		return []string{value}
	}
	return found
}

var (
	// tokenShape is how services make their keys, so that one knows them anywhere.
	tokenShape = lazyregexp.New(`\b(?:[sr]k_(?:live|test|prod)_?\w{8,}|sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|gl(?:pat|ptt|cbt|dt|rt)-[\w-]{16,}` +
		`|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|AGE-SECRET-KEY-[0-9A-Z-]{8,}|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{20,}` +
		`|SG\.[\w-]{16,}\.[\w-]{16,}|hv[sbr]\.[\w-]{20,}|dop_v1_\w{20,}|shp(?:at|ca|pa|ss)_\w{20,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)`)
	privateKey = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)
	// dataSource is user:password@tcp(host)/name.
	dataSource = lazyregexp.New(`^[^\s:/@]+:([^\s@]+)@[a-z]*\(`)
	webhook    = lazyregexp.New(`(?i)://(?:hooks\.slack\.com|(?:\w+\.)?discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com|chat\.googleapis\.com/v1/spaces|api\.telegram\.org)/[^?#]+`)
	pairName   = lazyregexp.New(`^[\w. -]+$`)
	seedPhrase = lazyregexp.New(`^[a-z]{3,10}(?: [a-z]{3,10}){11,23}$`)
)

// ofPairs returns what names in a list of settings say is a secret, as connection
// strings and headers have it: "Server=db;Password=…", "host=db password=…".
func ofPairs(value string) (found []string) {
	parts := strings.Split(value, ";")
	if len(parts) == 1 {
		parts = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	}
	for _, part := range parts {
		name, v, ok := strings.Cut(part, "=")
		name, v = strings.TrimSpace(name), strings.Trim(strings.TrimSpace(v), `"'`)
		if !ok || v == "" || !pairName().MatchString(name) || isSetting(v) {
			continue
		}
		if Named(strings.ReplaceAll(name, " ", "_")) || strings.EqualFold(name, "pwd") || strings.EqualFold(name, "sig") || strings.EqualFold(name, "SharedAccessSignature") {
			found = append(found, v)
		}
	}
	return found
}

// isSeed reports whether a variable that is called a seed or a phrase is the one from which
// keys are made: words of a wallet, or many random digits; not a number for tests or
// a list of hosts.
func isSeed(name, value string) bool {
	words := words(name)
	if !slices.ContainsFunc(words, func(w string) bool { return slices.Contains([]string{"SEED", "PHRASE", "WALLET", "RECOVERY"}, w) }) {
		return false
	}
	return seedPhrase().MatchString(value) || len(value) >= 16 && !isPlain(value) && !strings.Contains(value, "://")
}

func words(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}
