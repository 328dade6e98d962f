package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/odradek-go/odradek/streamstest"
)

func TestProperties(t *testing.T) {
	p, err := parseProperties(strings.Join([]string{
		"# a comment", "! another", "", "  plain = value  ", "colon: c", "space s p a c e", "empty", "empty.too=",
		`long=one,\`, `     two,\`, "three", `escaped\ \:key=a\tb\\c\u0041\u00e9\uD83D\uDE00\z`, `ends=with\\`, "after=1\r", `joined=# no \`, "# comment",
	}, "\n"))
	want := properties{
		"plain": "value  ", "colon": "c", "space": "s p a c e", "empty": "", "empty.too": "", "long": "one,two,three",
		"escaped :key": "a\tb\\cAé😀z", "ends": `with\`, "after": "1", "joined": "# no # comment",
	}
	if err != nil || !maps.Equal(p, want) {
		t.Errorf("%q\n%v", p, err)
	}
	for _, text := range []string{`key=\u12`, `key=\uzzzz`} {
		if _, err := parseProperties(text); err == nil || strings.Contains(err.Error(), "zzzz") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("a=b\\\nc\n")
	f.Add("sasl.jaas.config=x required username=\"u\" password='p\\'';")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parseProperties(text); err == nil {
			_, _ = p.security() // it must not panic
			_, _, _ = login(text)
		}
	})
}

func TestLogin(t *testing.T) {
	const module = "org.apache.kafka.common.security.plain.PlainLoginModule required "
	for jaas, want := range map[string][2]string{
		module + `username="me" password="s3=c;r t";`:          {"me", "s3=c;r t"},
		module + `password='it\'s' username=me;`:               {"me", "it's"},
		module + "\n username = \"a b\"\n password=\"\\\"\" ;": {"a b", `"`},
		"": {"", ""},
	} {
		user, password, err := login(jaas)
		if err != nil || user != want[0] || password != want[1] {
			t.Errorf("%s: %q, %q, %v", jaas, user, password, err)
		}
	}
	if _, _, err := login(module + `password="open`); err == nil || strings.Contains(err.Error(), "open") {
		t.Errorf("a value without an end: %v", err)
	}
}

// secure is a cluster with TLS and SASL. Its certificate is for example.com and the
// loopback addresses.
func secure(t *testing.T) (addr, dir string) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	b, err := streamstest.NewBroker(streamstest.WithKfake(
		kfake.TLS(&tls.Config{Certificates: server.TLS.Certificates}),
		kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "me", "s3cret"), kfake.Superuser("SCRAM-SHA-256", "me", "s3cret"), kfake.Superuser("SCRAM-SHA-512", "me", "s3cret"),
	))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	dir = t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{
		"ca.pem": string(ca), "password": "s3cret\n", "wrong": "s3cret-but-wrong\n", "jks.properties": "security.protocol=SSL\nssl.truststore.location=" + dir + "/ca.jks\n",
		"client.properties": fmt.Sprintf("bootstrap.servers=%s\nsecurity.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location=%s/ca.pem\n"+
			"sasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n  username=\"me\" password=\"s3cret\";\n", b.Addrs()[0], dir),
		"inline.properties": "security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.certificates=" + strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", `\n\`+"\n") +
			"\nssl.endpoint.identification.algorithm=\nsasl.mechanism=PLAIN\nsasl.jaas.config=x required username=me password=s3cret;\n",
		"kerberos.properties": "security.protocol=SASL_SSL\nsasl.kerberos.service.name=kafka\n",
		"protocol.properties": "security.protocol=SSH\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b.Addrs()[0], dir
}

func TestSecure(t *testing.T) {
	addr, dir := secure(t)
	server := " -bootstrap-server " + addr + " "
	ca := server + "-tls-ca " + dir + "/ca.pem "
	login := "-user me -password-file " + dir + "/password "
	for _, flags := range []string{
		ca + login + "-sasl-mechanism PLAIN",
		ca + login + "-sasl-mechanism scram-sha-256",
		server + "-tls-skip-verify " + login + "-sasl-mechanism SCRAM-SHA-512",
		"-command-config " + dir + "/client.properties",
		server + "-command-config " + dir + "/inline.properties",
		"-command-config " + dir + "/client.properties " + login + "-sasl-mechanism PLAIN",
	} {
		odradek(t, strings.Fields("group list "+flags)...).expect(t, 0, "GROUP STATE COORDINATOR")
	}
	t.Setenv(passwordVar, "s3cret")
	odradek(t, strings.Fields("group list "+ca+"-user me -sasl-mechanism PLAIN")...).expect(t, 0)
	for flags, want := range map[string]struct {
		code int
		says string
	}{
		ca + "-sasl-mechanism PLAIN -user me -password-file " + dir + "/wrong": {1, "check -user, its password, and -tls"},
		server + "-tls " + login + "-sasl-mechanism PLAIN":                     {1, "certificate"},
		ca + login + "-sasl-mechanism GSSAPI":                                  {2, "the SASL mechanism GSSAPI isn't known"},
		ca + login:                                                             {2, "-user needs -sasl-mechanism"},
		server + "-tls-ca " + dir + "/password":                                {1, "there is no certificate in PEM"},
		server + "-tls-ca " + dir + "/none":                                    {1, "-tls-ca open"},
		server + "-tls-cert " + dir + "/ca.pem":                                {1, "the client's certificate and key"},
		"-command-config " + dir + "/none":                                     {1, "-command-config open"},
		"-command-config " + dir + "/jks.properties":                           {1, `ssl.truststore.type is "": only PEM can be read`},
		"-command-config " + dir + "/kerberos.properties":                      {1, "sasl.kerberos.service.name can't be honoured"},
		"-command-config " + dir + "/protocol.properties":                      {1, `security.protocol is "SSH"`},
	} {
		r := odradek(t, strings.Fields("group list -timeout 5s "+flags)...)
		r.expect(t, want.code, want.says)
		if strings.Contains(r.stderr, "s3cret") {
			t.Errorf("a secret is printed: %s", r.stderr)
		}
	}
}

// A certificate that nobody trusts isn't accepted because its name isn't checked.
func TestHostnamesOnly(t *testing.T) {
	addr, dir := secure(t)
	other := stranger(t)
	file := filepath.Join(dir, "other.properties")
	if err := os.WriteFile(file, []byte("security.protocol=SSL\nssl.endpoint.identification.algorithm=\nssl.truststore.type=PEM\nssl.truststore.location="+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	odradek(t, "group", "list", "-bootstrap-server", addr, "-timeout", "5s", "-command-config", file).expect(t, 1, "certificate")
}

// stranger is a file with a certificate that signs nothing of the cluster's.
func stranger(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
