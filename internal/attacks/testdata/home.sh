umask 022
mkdir -p home outside run; chmod 700 home; cd home
printf '[user]\n name = u\n email = u@example.org\n[protocol "file"]\n allow = always\n[init]\n defaultBranch = main\n' > .gitconfig
for f in .bashrc .profile .vimrc notes.txt .config/git/ignore .config/systemd/user/x.service .config/autostart/x.desktop \
	.local/bin/tool bin/tool .claude/CLAUDE.md .codex/config.toml .cache/p10k.zsh .local/share/app/x go/bin/tool .ssh/config; do
	mkdir -p "$(dirname $f)"; printf '# mine\n' > $f
done
chmod 755 bin/tool .local/bin/tool go/bin/tool; chmod 700 .ssh
mkdir -p src .uwf; chmod 700 .uwf; cd src
git init -q lib; (cd lib; echo x > f; git add .; git commit -qm lib)
git init -q repo; cd repo
for i in 1 2 3; do echo $i >> f; mkdir -p docs src; echo $i > docs/d; echo $i > src/s; echo 'all:' > Makefile; git add .; git commit -qm c$i; done
git submodule --quiet add ../lib sub; git commit -qm sub
git init -q inner; git -C inner commit -q --allow-empty -m inner; echo inner/ >> .git/info/exclude
mkdir -p .workflow .claude; printf 'mine\n' > .workflow/x.yaml; echo '{}' > .claude/settings.json; echo canary-dotenv > .env
printf '.env\ngot/\ntools/\n' >> .git/info/exclude; git add .workflow .claude; git commit -qm more
git clone -q --bare . ../origin.git; git remote add origin ../origin.git; git fetch -q; git branch -q -u origin/main
git worktree add -q ../linked -b linked; echo '#!/bin/sh' > .git/hooks/mine
rm -f .git/hooks/*.sample .git/modules/sub/hooks/*.sample inner/.git/hooks/*.sample ../origin.git/hooks/*.sample ../lib/.git/hooks/*.sample
cp -r ../lib ../other
