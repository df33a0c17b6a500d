//===- Linker.cpp ---------------------------------------------------------===//
#include "runtime/cuda/Linker.h"

#include "runtime/cuda/Library.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace weft::rt::cuda {
namespace {

absl::StatusOr<LinkLibrary> loadLinker() {
  absl::StatusOr<Library> library =
      Library::open({"libnvJitLink.so.13", "libnvJitLink.so.12"}, "linking a kernel with device functions");
  if (!library.ok())
    return library.status();
  LinkLibrary linker{};
  Binder bind(*library);
  bind("nvJitLinkCreate", linker.create);
  bind("nvJitLinkDestroy", linker.destroy);
  bind("nvJitLinkAddData", linker.addData);
  bind("nvJitLinkComplete", linker.complete);
  bind("nvJitLinkGetLinkedCubinSize", linker.cubinBytes);
  bind("nvJitLinkGetLinkedCubin", linker.cubin);
  bind("nvJitLinkGetErrorLogSize", linker.errorLogBytes);
  bind("nvJitLinkGetErrorLog", linker.errorLog);
  bind("nvJitLinkVersion", linker.version);
  if (absl::Status status = bind.status("Weft needs nvJitLink 12.3 or newer"); !status.ok())
    return status;
  unsigned major = 0, minor = 0;
  linker.version(&major, &minor);
  linker.identity = absl::StrCat("nvJitLink ", major, ".", minor);
  return linker;
}

/// A link in progress.
class Link {
public:
  Link(const LinkLibrary &linker, const Kernel &kernel) : linker(linker), kernel(kernel) {}
  ~Link() {
    if (handle)
      linker.destroy(&handle);
  }
  absl::Status start(std::vector<const char *> options) {
    return checked(linker.create(&handle, static_cast<uint32_t>(options.size()), options.data()),
                   "the linker refuses its options");
  }
  absl::Status add(LinkInput type, const std::string &object, const std::string &name) {
    // PTX counts its terminating zero.
    size_t bytes = object.size() + (type == kLinkPtx ? 1 : 0);
    return checked(linker.addData(handle, type, object.c_str(), bytes, name.c_str()), name + " is refused");
  }
  absl::StatusOr<std::string> finish() {
    if (absl::Status status = checked(linker.complete(handle), "linking failed"); !status.ok())
      return status;
    size_t bytes = 0;
    if (absl::Status status = checked(linker.cubinBytes(handle, &bytes), "no cubin"); !status.ok())
      return status;
    std::string cubin(bytes, '\0');
    if (absl::Status status = checked(linker.cubin(handle, cubin.data()), "no cubin"); !status.ok())
      return status;
    return cubin;
  }

private:
  absl::Status checked(int result, std::string_view what) const {
    if (result == 0)
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("kernel ", kernel.name, ": ", std::string(what), " (",
                                                   linker.identity, ", error ", result, "): ", log()));
  }
  std::string log() const {
    size_t bytes = 0;
    if (!handle || linker.errorLogBytes(handle, &bytes) != 0 || bytes == 0)
      return "no message";
    std::string text(bytes, '\0');
    if (linker.errorLog(handle, text.data()) != 0)
      return "no message";
    text.resize(std::min(text.find('\0'), text.size()));
    return std::string(absl::StripAsciiWhitespace(text));
  }

  const LinkLibrary &linker;
  const Kernel &kernel;
  LinkHandle handle = nullptr;
};

} // namespace

absl::StatusOr<const LinkLibrary *> linkLibrary() {
  static const auto *loaded = new absl::StatusOr<LinkLibrary>(loadLinker());
  if (!loaded->ok())
    return loaded->status();
  return &**loaded;
}

absl::StatusOr<std::string> linkKernel(const LinkLibrary &linker, const Kernel &kernel,
                                       const std::vector<rt::Library> &libraries, const std::string &chip) {
  if (kernel.object.find("setmaxnreg") != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", kernel.name, ": its PTX uses setmaxnreg, which ", linker.identity,
                     " drops: such a kernel can't call functions of libraries"));
  bool lto = false;
  for (const rt::Library &library : libraries)
    lto = lto || library.form == rt::Library::Form::LtoIr;
  std::string arch = "-arch=" + chip;
  std::vector<const char *> options{arch.c_str(), "-O3"};
  if (lto)
    options.push_back("-lto");
  Link link(linker, kernel);
  if (absl::Status status = link.start(options); !status.ok())
    return status;
  if (absl::Status status = link.add(kLinkPtx, kernel.object, kernel.name); !status.ok())
    return status;
  for (const rt::Library &library : libraries) {
    LinkInput type = library.form == rt::Library::Form::Ptx ? kLinkPtx : kLinkLtoIr;
    if (absl::Status status = link.add(type, library.object, "library " + library.name); !status.ok())
      return status;
  }
  return link.finish();
}

} // namespace weft::rt::cuda
