# The Homebrew formula; make archives fills in the version and the checksums.
class Uwf < Formula
  desc "Workflow engine for AI agents, with results you can trust"
  homepage "https://github.com/united-workforce/uwf"
  version "{version}"
  license "MIT"

  on_macos do
    on_arm do
      url "https://github.com/united-workforce/uwf/releases/download/v{version}/uwf_v{version}_darwin_arm64.tar.gz"
      sha256 "{darwin_arm64}"
    end
    on_intel do
      url "https://github.com/united-workforce/uwf/releases/download/v{version}/uwf_v{version}_darwin_amd64.tar.gz"
      sha256 "{darwin_amd64}"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/united-workforce/uwf/releases/download/v{version}/uwf_v{version}_linux_arm64.tar.gz"
      sha256 "{linux_arm64}"
    end
    on_intel do
      url "https://github.com/united-workforce/uwf/releases/download/v{version}/uwf_v{version}_linux_amd64.tar.gz"
      sha256 "{linux_amd64}"
    end
  end

  def install
    bin.install Dir["uwf*", "ocas"]
    doc.install "README.md", "LICENSE", "THIRD-PARTY", "SBOM.cdx.json"
    generate_completions_from_executable(bin/"uwf", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/uwf --version")
  end
end
