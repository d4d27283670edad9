package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/secret"
)

const key = `sk-live/4f"kq9Z+x=7&Tr0ubador`

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "GH_TOKEN", "npmToken", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD",
		"APIKEY", "OPENAI_API_KEYS", "GOOGLE_CREDENTIALS", "KEY_2", "my-token", "SLACK_WEBHOOK", "HTTP_AUTHORIZATION", "NPM_AUTH",
	} {
		require.True(t, secret.Named(name), name)
	}
	for _, name := range []string{
		"", "_", "PATH", "HOME", "PWD", "OLDPWD", "SSH_AUTH_SOCK", "SSH_ASKPASS", "XAUTHORITY", "AUTHOR", "TOKENIZERS_PARALLELISM",
		"KEYBOARD", "SSL_KEY_FILE", "SECRET_NAME", "LANG", "DATABASE_URL",
	} {
		require.False(t, secret.Named(name), name)
	}
}

func TestOfVariable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, value string
		want        []string
	}{
		{"GH_TOKEN", "ghp_0123456789abcdef", []string{"ghp_0123456789abcdef"}},
		{"DB_PASSWORD", "correcthorse", []string{"correcthorse"}},
		{"DB_PASSWORD", "postgres", nil},
		{"GH_TOKEN", "short", nil},
		{"HOME", "/home/x9/Ab0123456789", nil},
		{"GOOGLE_CREDENTIALS", "/home/ann/Key_1/gcp.json", nil},
		{"SESSION_KEY", "/run/user/agent", nil},
		{"AWS_SECRET_ACCESS_KEY", "/tnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", []string{"/tnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}},
		{"MAX_TOKENS", "100000", nil},
		{"DATABASE_URL", "postgres://app:p%40ss-word9@db.example.org:5432/app", []string{"://app:p%40ss-word9@", "p%40ss-word9", "p@ss-word9"}},
		{"DATABASE_URL", "postgres://postgres:postgres@localhost/db", []string{"://postgres:postgres@"}},
		{"DATABASE_URL", "postgres://app:pass/word9@db/app", []string{"://app:pass/word9@", "pass/word9"}},
		{"REDIS_URL", "redis://:hunter2@cache", []string{"://:hunter2@"}},
		{"ORIGIN", "https://ghp_0123456789abcdef@github.com/a/b", []string{"://ghp_0123456789abcdef@", "ghp_0123456789abcdef"}},
		{"ORIGIN", "ssh://git@github.com/a/b", nil},
		{"TOKEN_URL", "https://login.example.org/oauth/token", nil},
		{"COMMIT_URL", "https://example.org/commit/0123456789abcdef0123456789abcdef01234567?x=0123456789abcdef", nil},
		{"WEBHOOK", "https://hooks.example.org/services/T0000000/B0000000/x9AbC1dE2fG3hI4jK5lM6", []string{"x9AbC1dE2fG3hI4jK5lM6"}},
		{"FEED", "https://example.org/feed?page=2&token=letmeinplease", []string{"letmeinplease"}},
	} {
		require.Equal(t, test.want, secret.OfVariable(test.name, test.value), "%s=%s", test.name, test.value)
	}
}

// Secrets found in real environments under names that don't indicate one.
func TestSecretsByTheirShape(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, value, secret string }{
		{"AZURE_STORAGE_CONNECTION_STRING", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6==;EndpointSuffix=core.example.net", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6=="},
		{"CONN", "Server=db;User Id=app;Password=hunter2!x;", "hunter2!x"},
		{"CONN", "host=db user=app password='hunter2!x' dbname=y", "hunter2!x"},
		{"CONN", "app:hunter2!x@tcp(db:3306)/y", "hunter2!x"},
		{"OTLP_HEADERS", "api-key=x9AbC1dE2fG3,x-env=prod", "x9AbC1dE2fG3"},
		{"SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T000/B000/XXXXXXXX", "://hooks.slack.com/services/T000/B000/XXXXXXXX"},
		{"NOTIFY", "https://discord.com/api/webhooks/123/abc", "://discord.com/api/webhooks/123/abc"},
		{"STRIPE_SK", "sk_live_51Hxyz0123", "sk_live_51Hxyz0123"},
		{"SOPS_AGE", "AGE-SECRET-KEY-1QQPQ8Z9XW", "AGE-SECRET-KEY-1QQPQ8Z9XW"},
		{"X", "-----BEGIN EC PRIVATE KEY-----\nMHcC\n", "-----BEGIN EC PRIVATE KEY-----\nMHcC\n"},
		{"MNEMONIC", "legal winner thank year", "legal winner thank year"},
		{"SEED", "legal winner thank year wave sausage worth useful legal winner thank yellow", "legal winner thank year wave sausage worth useful legal winner thank yellow"},
		{"SEED", "0x9f86d081884c7d659a2feaa0c55ad015", "0x9f86d081884c7d659a2feaa0c55ad015"},
		{"LDAP_PW", "correcthorse", "correcthorse"},
		{"DB_PASS", "correcthorse", "correcthorse"},
	} {
		require.Equal(t, []string{test.secret}, secret.OfVariable(test.name, test.value), test.name)
		require.True(t, secret.Guarded(test.name, test.value), test.name)
	}
	for name, value := range map[string]string{
		"RANDOM_SEED": "42", "CASSANDRA_SEEDS": "db1.example.org,db2.example.org", "LS_COLORS": "rs=0:di=01;34:*.key=00;32:*.pw=01", "PLUGINS": "git docker kubectl helm node npm yarn go rust java ruby perl",
		"CFLAGS": "-O2 -DTOKEN_SIZE=8", "GIT_COMMIT": "0123456789abcdef0123456789abcdef01234567", "BYPASS": "everything", "GOFLAGS": "-mod=mod -ldflags=-s", "PS1": "sk-> ", "DOCS": "https://discord.com/developers/docs",
	} {
		require.False(t, secret.Guarded(name, value), name)
		require.Empty(t, secret.OfVariable(name, value), name)
	}
}

func TestGuarded(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"GH_TOKEN": "short", "KEY": key, "URL": "pg://a:b@c", "DB_PASSWORD": "secret"} {
		require.True(t, secret.Guarded(name, value), name)
	}
	for name, value := range map[string]string{"MAX_TOKENS": "4096", "PATH": "/bin", "TOKEN_URL": "https://x/token", "SSH_AUTH_SOCK": "/run/x", "DB_PASSWORD": ""} {
		require.False(t, secret.Guarded(name, value), name)
	}
}

func TestOfDotEnv(t *testing.T) {
	t.Parallel()
	for _, plain := range []string{
		"true", "1", "production", "eu-central-1", "db.example.org:5432", "http://127.0.0.1:8080/v1", "gpt-4o-2024-08-06", "Europe/Berlin",
		"en_US.UTF-8", "/home/ann/project/config.json", "ann@example.org", "30m", "localhost,127.0.0.1", "info", "development",
		"claude-sonnet-4-5", "qwen2.5-coder:32b",
	} {
		require.Empty(t, secret.OfDotEnv("SETTING", plain), plain)
	}
	for _, text := range []string{"x9AbC1dE2fG3hI4jK5lM6", "sk_live_51Hxyz0123", "hunter2!hunter2!", "0123456789012345", "-----BEGIN KEY-----\nMIIEvQ\n"} {
		require.Equal(t, []string{text}, secret.OfDotEnv("SETTING", text), text)
	}
	require.Equal(t, []string{"x9AbC1dE2fG3hI4jK5lM6"}, secret.OfDotEnv("HOOK", "https://hooks.example.org/services/T0/x9AbC1dE2fG3hI4jK5lM6"))
	require.Equal(t, []string{"correct-horse"}, secret.OfDotEnv("DB_PASSWORD", "correct-horse"))
	require.Equal(t, []string{"://a:hunter2@"}, secret.OfDotEnv("DB", "pg://a:hunter2@db/x"))
}

// Encodings of languages other than Go: JSON with escapes for all non-ASCII characters, and URLs with
// different escapes.
func TestHideKnowsOtherLanguages(t *testing.T) {
	t.Parallel()
	for given, forms := range map[string][]string{
		"pa/ssé\U0001f600w0rd": {
			`pa/ss\u00e9\ud83d\ude00w0rd`, `pa\/ss\u00E9\uD83D\uDE00w0rd`, "pa/ss%C3%A9%F0%9F%98%80w0rd", "pa%2fss%c3%a9%f0%9f%98%80w0rd",
		},
		"aG3-_x9Z/+=pQ==": {
			"aG3-_x9Z/%2B%3DpQ%3D%3D", "aG3-_x9Z/+=pQ==", "aG3-_x9Z%2F%2B%3DpQ%3D%3D",
			"%61%47%33%2D%5F%78%39%5A%2F%2B%3D%70%51%3D%3D", "%61%47%33%2d%5f%78%39%5a%2f%2b%3d%70%51%3d%3d",
		},
		"(it's) a! s*cret~": {"(it's)%20a!%20s*cret~", "%28it%27s%29%20a%21%20s%2Acret~", "%28it%27s%29+a%21+s%2Acret~"},
	} {
		s := secret.NewSet(given)
		for _, form := range forms {
			require.Equal(t, "<"+secret.Hidden+">", s.Hide("<"+form+">"), form)
		}
	}
}

// wrapped wraps a text as programs do.
func wrapped(text string, columns int, end string) string {
	var b strings.Builder
	for len(text) > columns {
		b.WriteString(text[:columns] + end)
		text = text[columns:]
	}
	return b.String() + text + end
}

func TestHideKnowsTheForms(t *testing.T) {
	t.Parallel()
	s := secret.NewSet(key, "tooshrt")
	quoted, err := json.Marshal("a " + key + "\n")
	require.NoError(t, err)
	for name, text := range map[string]string{
		"plain":        "the key is " + key + ".",
		"JSON":         string(quoted),
		"JSON of JSON": strings.ReplaceAll(string(quoted), "/", `\/`),
		"query":        "?k=" + url.QueryEscape(key) + "&x",
		"query, lower": strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3D", "%3d").Replace(url.QueryEscape(key)),
		"path":         "/" + url.PathEscape(key) + "/",
		"wrapped":      wrapped(key, 7, "\r\n"),
		"wrapped JSON": wrapped(key, 7, `\n`),
	} {
		got := s.Hide(text)
		require.Contains(t, got, secret.Hidden, name)
		require.NotContains(t, got, "kq9Z", name)
		require.True(t, s.Holds(text), name)
		require.Equal(t, got, s.Hide(got), name)
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for before := range 9 {
			text := strings.Repeat("x", before) + key + "\nNAME=tooshrt\n"
			for _, columns := range []int{4, 11, 76} {
				for _, end := range []string{"\n", "\r\n", `\n`} {
					got := s.Hide(wrapped(e.EncodeToString([]byte(text)), columns, end))
					require.Contains(t, got, secret.Hidden)
					clear, _ := e.DecodeString(strings.ReplaceAll(got, secret.Hidden, ""))
					require.NotContains(t, string(clear), key[5:10])
				}
			}
		}
	}
	require.Equal(t, "a tooshrt one", s.Hide("a tooshrt one"))
	require.Equal(t, "a[hidden key]b[hidden key]", s.Hide("a"+key+"b"+key))
}

func TestHideOfLongAndMany(t *testing.T) {
	t.Parallel()
	var pem strings.Builder
	pem.WriteString("-----BEGIN PRIVATE KEY-----\n")
	for i := range 20 {
		fmt.Fprintf(&pem, "%d%s\n", i, strings.Repeat(fmt.Sprintf("Qx%dz", i), 15)[:60])
	}
	pem.WriteString("-----END PRIVATE KEY-----\n")
	long := strings.Repeat("0aB9", 50) + "the-end"
	s := secret.NewSet(pem.String(), long, "beginning-of", "beginning-of-another", "of-another-and-more")
	require.Equal(t, "x"+secret.Hidden+"y", s.Hide("x"+long+"y"))
	numbered := ""
	for i, line := range strings.Split(pem.String(), "\n") {
		numbered += fmt.Sprintf("%3d\t%s\n", i, line)
	}
	require.NotContains(t, s.Hide(numbered), "Qx")
	require.Contains(t, s.Hide(numbered), "-----BEGIN PRIVATE KEY-----")
	require.Equal(t, secret.Hidden+".", s.Hide("beginning-of-another-and-more."), "what overlaps is one")
	require.Equal(t, secret.Hidden+"-ano", s.Hide("beginning-of-ano"))
}

func TestAnEmptySetHidesNothing(t *testing.T) {
	t.Parallel()
	var s secret.Set
	require.True(t, s.Empty())
	require.Equal(t, key, s.Hide(key))
	require.False(t, s.Holds(key))
	shown, rest := s.Split(key)
	require.Equal(t, key, shown)
	require.Empty(t, rest)
}

// A secret written in pieces is hidden wherever it is split, in every encoding.
func TestWriter(t *testing.T) {
	t.Parallel()
	s := secret.NewSet(key)
	quoted, err := json.Marshal(key)
	require.NoError(t, err)
	for _, form := range []string{key, string(quoted), url.QueryEscape(key), base64.StdEncoding.EncodeToString([]byte(key)),
		wrapped(base64.StdEncoding.EncodeToString([]byte(key)), 4, `\n`)} {
		text := "before " + form + " and after sk-li"
		for size := range len(text) {
			var got bytes.Buffer
			w := s.NewWriter(&got)
			for rest := text; rest != ""; {
				n := min(size+1, len(rest))
				_, err := w.Write([]byte(rest[:n]))
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.NoError(t, w.Flush())
			require.Equal(t, s.Hide(text), got.String(), "pieces of %d", size+1)
		}
	}
	shown, rest := s.Split("so far: sk-live/4")
	require.Equal(t, "so far: ", shown)
	require.Equal(t, "sk-live/4", rest)
}

func FuzzHide(f *testing.F) {
	f.Add("a", "b", true)
	f.Add(`\u00`, `%2`, false)
	f.Fuzz(func(t *testing.T, before, after string, newline bool) {
		s := secret.NewSet(key)
		text := before + key + after
		if newline {
			text = before + key[:9] + "\n" + key[9:] + after
		}
		got := s.Hide(text)
		require.NotContains(t, got, key)
		require.Contains(t, got, secret.Hidden)
		shown, rest := s.Split(text)
		require.NotContains(t, shown, key)
		require.True(t, strings.HasSuffix(text, rest))
	})
}

func BenchmarkHide(b *testing.B) {
	var secrets []string
	for i := range 50 {
		secrets = append(secrets, fmt.Sprintf("sk-proj-%02d%s", i, strings.Repeat("x9AbC", 8)))
	}
	s := secret.NewSet(secrets...)
	line := `{"level":"info","msg":"a line of a log","n":123456,"path":"C:\\x\\y","url":"http://x/%20y"}` + "\n"
	for name, text := range map[string]string{
		"json": strings.Repeat(line, 10<<20/len(line)),
		"text": strings.Repeat("The quick brown fox jumps over the lazy dog.\n", 10<<20/45),
		"near": strings.Repeat("sk-proj-", 10<<20/8),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Hide(text)
			}
		})
	}
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			secret.NewSet(secrets...).Hide("a text that is long enough")
		}
	})
}
