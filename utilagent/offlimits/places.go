package offlimits

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/programs"
)

// keys are where people keep keys, below their home directory. Programs that find
// theirs unreadable go on without them.
func keys() []string {
	return append(programs.Logins(), []string{
		".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gh", ".config/hub", ".config/glab-cli", ".config/gcloud",
		".config/doctl", ".config/rclone", ".config/op", ".config/git/credentials", ".config/sops", ".config/containers/auth.json",
		".netrc", "_netrc", ".git-credentials", ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".password-store", ".terraform.d/credentials.tfrc.json",
		".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings-security.xml", ".env", ".s3cfg", ".boto", ".databrickscfg", ".oci", ".fly", ".composer/auth.json", ".config/composer/auth.json",
		".config/age", ".config/anthropic", ".config/openai", ".config/hcloud", ".config/heroku", ".config/pypoetry/auth.toml", ".ngrok2", ".config/ngrok", ".mc",
		".bitcoin", ".ethereum", ".config/solana",
		// What was typed holds what was pasted.
		".bash_history", ".zsh_history", ".sh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".rediscli_history",
		".local/share/fish/fish_history", ".local/share/keyrings", ".local/share/kwalletd",
		// Browsers keep what they are logged in to.
		".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi",
		"snap/firefox", "snap/chromium", ".var/app/org.mozilla.firefox",
		".aider.conf.yml", ".continue", ".codeium", ".config/zed",
		// Services', by their command lines.
		".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".huggingface", ".pulumi/credentials.json", ".sentryclirc", ".config/stripe",
		".vercel", ".local/share/com.vercel.cli", ".config/netlify", ".netlify", ".kaggle", ".config/kaggle", ".terraformrc", ".tofurc", ".authinfo", ".authinfo.gpg", ".netrc.gpg",
		".msmtprc", ".config/msmtp", ".mbsyncrc", ".fetchmailrc", ".muttrc", ".config/mutt", ".config/neomutt", ".config/aerc", ".config/himalaya", ".circleci", ".travis", ".config/wandb",
		".config/railway", ".railway", ".config/configstore", ".config/firebase", ".config/snowflake", ".snowflake", ".snowsql", ".dbt/profiles.yml", ".config/psql", ".pg_service.conf",
		".config/linode-cli", ".config/scw", ".config/exercism", ".config/tea", ".config/lab", ".config/Bitwarden CLI", ".config/1Password", ".config/keybase", ".local/share/keybase",
		".supabase", ".config/cloudflared", ".cloudflared", ".wrangler", ".config/.wrangler", ".step", ".config/nats", ".config/atuin", ".local/share/atuin", ".irbrc_history", ".irb_history",
		".config/gspread", ".config/hcp", ".consul-token", ".nomad-token", ".config/spotify-player", ".subversion/auth", ".config/git-credential-manager", ".gcm", ".ansible/vault", ".vault_pass", ".rclone.conf",
		// Chat programs', mail programs' and more browsers'.
		".config/Slack", ".config/discord", ".config/Signal", ".config/Element", ".config/teams-for-linux", ".config/Microsoft", ".local/share/TelegramDesktop", ".config/zoom", ".zoom", ".purple", ".weechat", ".config/weechat", ".irssi", ".config/irssi",
		".config/opera", ".config/google-chrome-beta", ".config/chromium-browser", ".config/librewolf", ".librewolf", ".waterfox", ".config/zen", ".zen", ".config/evolution", ".local/share/evolution", ".var/app", "Library/Keychains", "Library/Cookies",
		".cache/uwf/guard", // the baselines of running commands are kept there
		"Library/Application Support/Google", "Library/Application Support/Firefox", "Library/Application Support/Slack", "snap/slack", "snap/discord",
	}...)
}

// Options say what is off limits besides what this package knows. Paths may
// begin with ~; others that are not absolute begin at Dir.
type Options struct {
	UserHome string   // the user's own directory; "": there is none
	Path     string   // the list of directories in which the user's programs are looked for
	Dir      string   // the workspace
	Home     string   // of uwf
	Store    string   // of uwf
	Hide     []string // more to hide
	// AllowRead lifts what it names, with what is in it; AllowWrite too, for
	// writing as well, if it names something that is off limits or is in that.
	AllowRead  []string
	AllowWrite []string
}

// New makes the list. What does not exist is left out: nobody can make it later
// in a place that is not writable.
func New(o Options) List {
	l := List{readable: append(o.all(o.AllowRead), o.all(o.shown())...), writable: o.all(o.AllowWrite), home: o.UserHome}
	named := append(o.all([]string{o.Home, o.Store}), o.all(o.Hide)...)
	if o.UserHome != "" {
		for _, name := range keys() {
			named = append(named, o.resolve(filepath.Join(o.UserHome, filepath.FromSlash(name))))
		}
		for name, signs := range buildSettings() {
			if path := o.resolve(filepath.Join(o.UserHome, filepath.FromSlash(name))); holds(path, signs) {
				named = append(named, path)
			}
		}
	}
	for _, path := range named {
		if path == "" || path == string(filepath.Separator) || covered(l.hidden, path) || covered(l.readable, path) {
			continue
		}
		l.hidden = append(l.hidden, path)
	}
	l.guards = o.guard(l)
	if dir, home := o.resolve(o.Dir), o.resolve(o.UserHome); dir != "" && home != "" && within(dir, home) {
		l.user = home
	}
	return l
}

// shown are the threads of a home and the nodes of its store: agents are told to
// read them with uwf. Keys, sessions and locks lie beside them; who can open a lock
// can hold it. A store without a format has its nodes in the directory itself, and
// no locks.
func (o Options) shown() []string {
	var paths []string
	below := func(dir string, names ...string) {
		for _, name := range names {
			if dir != "" {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	below(o.Home, "threads.yaml", "history.jsonl", "registry.yaml", "facts.jsonl")
	if o.Store != "" && o.resolve(filepath.Join(o.Store, "format.json")) == "" {
		return append(paths, o.Store)
	}
	below(o.Store, "format.json", "nodes", "seals", "homes", "foreign")
	return paths
}

func (o Options) all(names []string) []string {
	var paths []string
	for _, name := range names {
		if path := o.resolve(name); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// resolve makes a path absolute and free of links; "" if it does not exist.
func (o Options) resolve(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok && o.UserHome != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		name = filepath.Join(o.UserHome, rest)
	}
	if name == "" {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.Dir, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return ""
	}
	return real
}

// buildSettings are files that builds need, and that hold a key in some homes; and by which
// words, in lower case, it can be told.
func buildSettings() map[string][]string {
	return map[string][]string{
		".npmrc":                    {"_auth", "_password"},
		".yarnrc.yml":               {"authtoken", "authident"},
		".m2/settings.xml":          {"<password>", "<passphrase>", "<privatekey>"},
		".config/pip/pip.conf":      {"@", "password"},
		".pip/pip.conf":             {"@", "password"},
		".bunfig.toml":              {"token", "password"},
		".gradle/gradle.properties": {"password", "token", "secret", "apikey"},
	}
}

// holds reports whether a file holds one of some words, or cannot be read.
func holds(path string, words []string) bool {
	if path == "" {
		return false
	}
	text, err := careful.ReadFile(path, 1<<20, careful.Follow)
	text = bytes.ToLower(text)
	return err != nil || slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}
