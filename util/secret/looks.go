package secret

import "regexp"

// Looks finds texts that look like a key: the formats of the large services, and settings of a .env
// file with the name of a secret.
type Looks struct{ form, setting *regexp.Regexp }

// NewLooks returns a finder, for one use of the program.
func NewLooks() Looks {
	return Looks{
		form: regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]{20}|[sr]k_(?:live|test)_[A-Za-z0-9]{12}|gh[pousr]_[A-Za-z0-9]{30}|` +
			`github_pat_[A-Za-z0-9_]{30}|glpat-[A-Za-z0-9_-]{20}|xox[abeoprs]-[A-Za-z0-9-]{10}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|` +
			`AIza[A-Za-z0-9_-]{35}|hf_[A-Za-z0-9]{30}|npm_[A-Za-z0-9]{36}|` +
			`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10})|-----BEGIN [A-Z ]*PRIVATE KEY`),
		setting: regexp.MustCompile(`\b([A-Z][A-Z0-9_]{2,63})=["']?([A-Za-z0-9+/_.~-]{8,})`),
	}
}

// shownOfKey bounds the bytes of a key that are shown: enough to recognise its kind.
const shownOfKey = 8

// In returns how the first key in a text begins, or the name of its setting; "": there is none.
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
