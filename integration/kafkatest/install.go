package kafkatest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// EnvCache is the environment variable that names the folder which keeps
// Kafka's jars and compiled Java programs between runs. Unset, it is odradek in
// the user's cache folder.
const EnvCache = "ODRADEK_KAFKA_CACHE"

// pom asks for what brokers, tools, Java Kafka Streams and its test driver need,
// and for a logger that writes to standard error.
const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.odradek</groupId>
  <artifactId>kafkatest</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><version>VERSION</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams-test-utils</artifactId><version>VERSION</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`

const copyDependencies = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// installation is one Kafka version's jars in the cache.
type installation struct {
	version string
	cache   string // the cache folder
	lib     string // the folder of jars
}

func (in installation) classpath(extra ...string) string {
	return strings.Join(append([]string{filepath.Join(in.lib, "*")}, extra...), string(os.PathListSeparator))
}

// install returns the jars of a Kafka version, resolving them with Maven if the
// cache lacks them.
func install(ctx context.Context, version string) (installation, error) {
	cache, err := cacheDir()
	if err != nil {
		return installation{}, err
	}
	project := strings.ReplaceAll(pom, "VERSION", version)
	dir := filepath.Join(cache, "kafka-"+version+"-"+shortHash([]byte(project)))
	err = build(ctx, dir, func(temp string) error {
		if err := os.WriteFile(filepath.Join(temp, "pom.xml"), []byte(project), 0o644); err != nil {
			return err
		}
		mvn := exec.CommandContext(ctx, "mvn", "-q", "-B", "-Dstyle.color=never", copyDependencies, "-DoutputDirectory=lib")
		mvn.Dir = temp
		if _, err := run(mvn); err != nil {
			return err
		}
		_, err := os.Stat(filepath.Join(temp, "lib", "kafka-clients-"+version+".jar"))
		return err
	})
	if err != nil {
		return installation{}, fmt.Errorf("kafkatest: resolving Apache Kafka %s with Maven into %s: %w", version, dir, err)
	}
	return installation{version: version, cache: cache, lib: filepath.Join(dir, "lib")}, nil
}

func cacheDir() (string, error) {
	dir := os.Getenv(EnvCache)
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("kafkatest: no cache folder, set %s: %w", EnvCache, err)
		}
		dir = filepath.Join(user, "odradek")
	}
	// Maven and javac run elsewhere.
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("kafkatest: cache folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("kafkatest: cache folder: %w", err)
	}
	return dir, nil
}

// build makes the folder dir appear whole or not at all, with what fill puts
// into a temporary folder, unless dir is there already. Processes take turns:
// one that comes second finds the first's work, and Maven's own repository,
// which does not bear two writers, has one.
func build(ctx context.Context, dir string, fill func(temp string) error) error {
	there := func() (bool, error) {
		_, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	if ok, err := there(); ok || err != nil {
		return err
	}
	unlock, err := lockFile(ctx, filepath.Join(filepath.Dir(dir), "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if ok, err := there(); ok || err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	if err := os.Rename(temp, dir); err != nil {
		os.RemoveAll(temp)
		// Where files can't be locked, another process may have been quicker.
		if ok, _ := there(); ok {
			return nil
		}
		return err
	}
	return nil
}

func shortHash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6])
}
