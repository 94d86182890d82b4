// RUN: not sluice-opt %s "--sluice-home-variables=home=storage device=titan-x" 2>&1 | FileCheck %s --check-prefix=LINK
// RUN: not sluice-opt %s "--sluice-home-variables=home=attic" 2>&1 | FileCheck %s --check-prefix=HOME
// LINK: titan-x: the profile has no 'links.storage'
// HOME: Cannot find option named 'attic'
func.func @step(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  return %x : tensor<64x64xf32>
}
